"""A local S3-compatible object store with set latency and bandwidth and with counters, for tests and benchmarks.

    with object_store(SHAPED) as store:
        store.upload(Path("tables"), "tables")
        store.reset()
        ...
        served = store.counts()

`store.py` has `object_store()`, and `s3a.py` has the settings for Spark. `python -m sample_data.object_store` builds
the server, once.
"""
