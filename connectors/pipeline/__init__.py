"""The pipelines of `pruned_read()` and `prune()`, from a call to a DataFrame and its record."""
