"""`TaskPayload`: data that tasks receive, and its lifetime."""

from __future__ import annotations

import gc
import pickle
import time
from pathlib import Path

import pytest

from connectors.arrow_scan.scan import TaskPayload


def test_small_payload_is_pickled_with_the_function():
    given = pickle.loads(pickle.dumps(TaskPayload.of(None, ("a", 1))))  # noqa: S301 - trusted data
    assert ("a", 1) == given.value


@pytest.mark.full
@pytest.mark.spark
def test_large_payload_lives_as_long_as_its_plan(spark):
    """PySpark itself keeps the file of a broadcast as long as its context."""

    def files() -> set[str]:
        return {each.name for each in Path(spark.sparkContext._temp_dir).iterdir()}

    def frame():
        given = TaskPayload.of(spark, "x" * 2000, 1000)

        def task(batches):
            for batch in batches:
                assert "x" * 2000 == given.value
                yield batch

        return spark.range(0, 4, 1, 2).mapInArrow(task, "id long")

    before = files()
    df = frame().where("id > 1")
    (made,) = files() - before
    for _ in range(2):
        gc.collect()
        spark._jvm.System.gc()
        assert [2, 3] == sorted(row.id for row in df.collect())
        assert made in files()
    del df
    deadline = time.monotonic() + 60
    while made in files() and time.monotonic() < deadline:
        gc.collect()
        spark._jvm.System.gc()
        time.sleep(0.1)
    assert made not in files()
