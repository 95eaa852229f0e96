"""Join keys as values: exact sets, sketches, bloom filters and the summary of a build."""
