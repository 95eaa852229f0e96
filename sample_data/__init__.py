"""Deterministic tables and other helpers that tests, demo and benchmarks share; README.md is the catalogue."""
