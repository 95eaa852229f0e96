"""Benchmarks; their recorded results are committed in `results/`."""
