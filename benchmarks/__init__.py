"""Measurements, of which the results are committed."""
