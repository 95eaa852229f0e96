"""The console script `scanprune`."""
