"""Everything that touches an engine or storage: Spark, Delta Lake, Parquet, Arrow."""
