"""Filters of one scan: which containers they skip and what is pushed to the reader."""
