"""Pruning of every query of a session."""
