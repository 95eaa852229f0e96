"""The Parquet connector."""
