"""An S3-compatible object store on this machine, shaped and counted, for tests and measurements.

    with object_store(SHAPED) as store:
        store.upload(Path("tables"), "tables")
        store.reset()
        ...
        served = store.counts()

`store.py` has that block, `s3a.py` what Spark needs to reach it. `python -m sample_data.object_store` builds its
server, once.
"""
