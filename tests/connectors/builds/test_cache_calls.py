"""Calls over py4j that the keys of cached builds cost: each takes some tenths of a millisecond."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.builds.cached_builds import BuildFingerprints
from pruning import PruningCache, prune
from tests.costs import FREE_BUILDS, NO_FIXED_COSTS

pytestmark = [pytest.mark.spark, pytest.mark.quick(3)]

# A build of its own for the few months costs more than it saves.
LATENCY = 5e3
OPTIONS = FREE_BUILDS.with_limits(costs=replace(NO_FIXED_COSTS, build_job=LATENCY, driver_build=LATENCY))


@pytest.fixture(scope="module")
def folder(spark, tmp_path_factory) -> str:
    """Sales, days and months in both formats, written ten minutes ago."""
    folder = tmp_path_factory.mktemp("calls")
    days = spark.range(0, 60, 1, 1).selectExpr("cast(id AS int) AS day", "cast(id div 10 AS int) AS month")
    tables = {
        "sales": spark.range(0, 1200, 1, 6).selectExpr("cast(id div 20 AS int) AS day", "id"),
        "days": days,
        "months": days.selectExpr("month", "day AS first_day").where("day % 10 = 0"),
    }
    for format_ in ("delta", "parquet"):
        for name, df in tables.items():
            df.write.format(format_).save(f"{folder}/{format_}/{name}")
    for each in Path(folder).rglob("part-*"):
        os.utime(each, (time.time() - 600,) * 2)
    return str(folder)


@pytest.fixture
def keys_made(monkeypatch) -> list[BuildFingerprints]:
    """The keys of builds, once for each time that they were made."""
    made, now = [], BuildFingerprints.now

    def noted(self):
        made.append(self)
        return now(self)

    monkeypatch.setattr(BuildFingerprints, "now", noted)
    return made


@pytest.mark.parametrize(
    ("days", "months", "most"),
    [("delta", "delta", 16), ("parquet", "parquet", 16), ("delta", "parquet", 24)],
    ids=["delta", "parquet", "both"],
)
def test_keys_of_builds_cost_few_calls_and_none_without_a_cache(
    spark, folder, bridge_calls, keys_made, days, months, most
):
    """One build over two tables, whose keys are made before and after it; a hit takes no more calls than the build."""

    def calls(cache: PruningCache | None, month: int = 2) -> int:
        df = spark.sql(f"""
            SELECT s.day, first_day, count(*) FROM delta.`{folder}/delta/sales` s JOIN (
                SELECT d.day, first_day FROM {days}.`{folder}/{days}/days` d
                LEFT JOIN {months}.`{folder}/{months}/months` m ON d.month = m.month WHERE d.month = {month}
            ) q ON s.day = q.day GROUP BY ALL""")
        return bridge_calls(lambda: prune(df, options=OPTIONS, cache=cache))

    cache = PruningCache()
    calls(PruningCache(), month=3)
    keys_made.clear()
    plain = calls(None)
    assert [] == keys_made
    assert plain < calls(cache) <= plain + most
    assert 2 == len(keys_made)
    assert plain >= calls(cache)
    assert (3, 1, 1) == (len(keys_made), cache.hits, cache.misses)
