"""The core of the oracle suite on a Spark cluster of several processes over an object store, with failures.

`python -m tests.cluster` (`make cluster`) starts a standalone master and two workers, and makes the comparisons of
`tests/oracle` there: pruned = unpruned = DuckDB, and skip counts. Then it kills processes and refuses requests to the
store in the middle of queries.
"""
