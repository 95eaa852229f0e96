"""What tasks are given, and how long it stays."""

from __future__ import annotations

import gc
import pickle
import time
from pathlib import Path

import pytest

from connectors.arrow_scan.scan import TaskPayload


def test_what_is_small_goes_with_the_function():
    given = pickle.loads(pickle.dumps(TaskPayload.of(None, ("a", 1))))  # noqa: S301 - it is ours
    assert ("a", 1) == given.value


@pytest.mark.full
@pytest.mark.spark
def test_what_is_large_stays_as_long_as_a_plan_leads_to_it(spark):
    """PySpark keeps the file of a broadcast as long as its context."""

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
