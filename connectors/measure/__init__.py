"""Metrics of Spark's executed scans."""
