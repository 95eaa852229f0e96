"""Tables and engines of tests that run contests without a real engine."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.contest import pool
from benchmarks.contest.contest import CONTENDERS
from benchmarks.contest.place import Place
from benchmarks.tests.stand_ins import STAND_IN


@pytest.fixture
def stand_ins(monkeypatch, tmp_path):
    """A pool in which the stand-in is the engine of each contender."""
    monkeypatch.setattr(pool, "ENGINES", dict.fromkeys(CONTENDERS, STAND_IN))
    with pool.pool(tmp_path, 20.0) as found:
        yield found


@pytest.fixture
def lake(tmp_path):
    """A plain and a partitioned table, with a Parquet file in the folder of a log, which is no data file."""
    rows = pa.table({"k": pa.array([1, 2], pa.int32())})
    for path in ("t/a.parquet", "t/_log/c.parquet", "p/day=1/a.parquet", "p/day=__HIVE_DEFAULT_PARTITION__/a.parquet"):
        file = tmp_path / "lake" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, file)
    return [Place(str(tmp_path)).table("lake", name, "parquet") for name in ("t", "p")]
