"""Queries of a workload by pruned Spark, stock Spark, DuckDB and DataFusion on the same files.

`python -m benchmarks.contest --help` lists the options. Each engine runs in a process of its own and answers requests
in lines of JSON, so that the operating system accounts for the reads, CPU and memory of each engine.
"""
