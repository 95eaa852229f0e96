"""Queries of TPC-DS by pruned Spark, stock Spark, DuckDB and DataFusion on the same files.

`python -m benchmarks.contest --help` says how to run it. Each engine runs in a process of its own and is asked by lines
of JSON, so that the operating system counts for each what it reads and uses.
"""
