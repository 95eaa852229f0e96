"""Join keys from DataFrames and Python values."""
