"""Storage-level scan pruning: the build side of a join becomes a filter on the scan of its probe side."""
