"""One scan by Spark's reader: its decision, its predicates and its DataFrame."""
