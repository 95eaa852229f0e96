"""Timestamps as Python values, in any time zone of the process, the JVM and the session."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from sample_data.confs import conf
from tests.oracle.answers import Keys
from tests.oracle.lakes import Layout
from tests.oracle.oracle import skips

pytestmark = pytest.mark.spark

BERLIN = ZoneInfo("Europe/Berlin")
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# Two timestamps per row group, and two row groups per file. Bounds in a Delta log are precise to the millisecond, and
# before 1972 to the minute.
MOMENTS = (
    *(datetime(1850, 6, 1, 12, 34, 56, 789012, timezone.utc), EPOCH - timedelta(days=30, microseconds=1)),
    # Microseconds before 1970, which a division must not round toward zero.
    *(EPOCH - timedelta(microseconds=1), EPOCH),
    # An hour that occurs twice.
    *(datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN), datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN)),
    *(datetime(2024, 12, 31, 23, 59, 59, 999_999, timezone.utc), datetime(2100, 1, 1, tzinfo=timezone.utc)),
    *(datetime(2262, 4, 12, tzinfo=timezone.utc), datetime(9999, 12, 31, 12, tzinfo=timezone.utc)),
    *(datetime(9999, 12, 31, 13, tzinfo=timezone.utc), datetime(9999, 12, 31, 23, 59, 59, 999_999, timezone.utc)),
)
FILES, GROUPS = 3, 6


def rows() -> pa.Table:
    instants = pa.array([moment.astimezone(timezone.utc) for moment in MOMENTS], pa.timestamp("us", "UTC"))
    walls = instants.cast(pa.timestamp("us"))
    return pa.table({"id": pa.array(range(len(MOMENTS)), pa.int64()), "at": instants, "wall": walls})


@pytest.fixture(params=["UTC", "America/St_Johns", "Asia/Kathmandu"])
def process(request, spark, monkeypatch):
    """A time zone of the process and the JVM that is not the session's."""
    zones = spark._jvm.java.util.TimeZone
    before = zones.getDefault()
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    zones.setDefault(zones.getTimeZone(request.param))
    yield request.param
    zones.setDefault(before)
    monkeypatch.undo()
    time.tzset()


# Failure catalogue 96, 105, 107: a literal has only the time zone that it states.
@pytest.mark.full
def test_timestamps_match_in_every_time_zone(oracle, spark, shared_lake, process):
    lake = shared_lake("zones", "parquet" if process == "UTC" else "delta", rows, Layout(file_rows=4, group_rows=2))
    instants = rows()["at"].combine_chunks()
    sets = [Keys.of("at", instants.slice(at, 1), given=[moment]) for at, moment in enumerate(MOMENTS)]
    with conf(spark, {"spark.sql.session.timeZone": "Europe/Stockholm"}):
        oracle.prepare(lake, sets)
        for at, keys in enumerate(sets):
            oracle.check(lake, keys, exact=[at % 2 == 0], expected=skips((1, FILES), (1, GROUPS)))
