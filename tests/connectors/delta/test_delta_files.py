from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from connectors.delta.log import Uris
from tests.connectors.delta_logs import column_of, opened, schema_of, write_log


def test_relative_and_absolute_paths_of_the_log():
    paths = pa.chunked_array([["p=a%2520b/x.parquet"], ["s3a://bucket/x%20y.parquet", "file:/c/y.parquet"]])
    uris = Uris("file:/data/t%20u/", paths)
    expected = ("file:/data/t%20u/p=a%2520b/x.parquet", "s3a://bucket/x%20y.parquet", "file:/c/y.parquet")
    assert expected == tuple(uris)
    assert (expected[-1], expected[1:]) == (uris[-1], uris[1:])
    with pytest.raises(IndexError):
        uris[3]


# Failure catalogue 55: many threads read each column once.
@pytest.mark.spark
def test_threads_share_fetched_columns(spark, tmp_path):
    schema = schema_of({"i": "int", "j": "int"})
    table = opened(spark, write_log(tmp_path / "t", schema, [{}, {}]))
    columns = [column_of(table, "i"), column_of(table, "j")]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda index: table.files([columns[index % 2]]), range(16)))
    assert 2 == len({id(column) for containers in found for column in containers.columns.values()})
    assert {2} == {len(containers) for containers in found}
