"""Deterministic tables, and whatever else tests, demo and benchmarks share: README.md is the catalogue."""
