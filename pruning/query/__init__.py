"""Logical plans of queries: join graph, build selection and runtime filters."""
