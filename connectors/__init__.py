"""Everything that touches an engine or storage: Spark, table formats, Arrow."""
