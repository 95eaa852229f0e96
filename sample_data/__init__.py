"""Deterministic tables for tests, demo and benchmarks: README.md is their catalogue."""
