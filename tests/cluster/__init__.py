"""The core of the oracle suite on a Spark cluster of several processes over an object store, with failures.

`python -m tests.cluster` (`make cluster`) starts a standalone master and two workers, and asks on them what
`tests/oracle` asks in one process: pruned = unpruned = DuckDB, and what was skipped. Then it ends processes and refuses
requests in the middle of queries.
"""
