"""The Delta Lake connector."""
