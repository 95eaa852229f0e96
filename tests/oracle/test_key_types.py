"""Keys of another type than the probe column match exactly where Spark's `=` matches, by its widest-type rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from sample_data.confs import conf
from tests.oracle.answers import Keys
from tests.oracle.lakes import Layout

pytestmark = pytest.mark.spark

NAN, INF = float("nan"), float("inf")
BIG = 1 << 53
LAYOUT = Layout(file_rows=4, group_rows=2)

NUMBERS: Mapping[str, tuple[pa.DataType, Sequence[object]]] = {
    "short": (pa.int16(), [-32768, -3, -2, 0, 1, 2, 3, 32767, 100, 101, 102, None]),
    "int": (pa.int32(), [-(2**31), -3, -2, 0, 1, 2, 3, 2**31 - 1, 16777216, 16777217, 16777218, None]),
    "long": (pa.int64(), [-(2**63), BIG - 1, BIG, BIG + 1, 0, 1, 2, 2**63 - 1, -BIG - 1, 16777217, 3, None]),
    "d7_2": (
        pa.decimal128(7, 2),
        [Decimal(text) for text in ("-99999.99", "-1.50", "-0.01", "0", "0.10", "1", "1.5", "2", "99999.99", "3", "7")]
        + [None],
    ),
    "d38_10": (
        pa.decimal128(38, 10),
        [Decimal(text) for text in ("-9999999999999999999999999999.5", "-1.5", "0", "0.1", "1", "1.5", "2", "3")]
        + [Decimal(BIG), Decimal(BIG + 1), Decimal("9" * 28), None],
    ),
    "float": (pa.float32(), [-INF, -1.5, -0.0, 0.0, 0.1, 1.5, 3.0, 16777216.0, 3.4028234663852886e38, INF, NAN, None]),
    "double": (pa.float64(), [-INF, -1.5, -0.0, 0.0, 0.1, 1.5, 3.0, float(BIG), 16777217.0, INF, NAN, None]),
}

NUMBER_KEYS: Mapping[str, tuple[pa.DataType, Sequence[object]]] = {
    "tinyint": (pa.int8(), [-3, 0, 2, 100]),
    "int": (pa.int32(), [-3, 0, 3, 16777217, 2**31 - 1]),
    "bigint": (pa.int64(), [0, 3_000_000_000, BIG, BIG + 1, -BIG - 1, 2**63 - 1, -(2**63), 16777217]),
    "decimal(4,1)": (pa.decimal128(4, 1), [Decimal("1.5"), Decimal("-1.5"), Decimal("0.1"), Decimal(3)]),
    "decimal(9,4)": (pa.decimal128(9, 4), [Decimal("1.5"), Decimal("1.5001"), Decimal("0.1"), Decimal("-0.01")]),
    "decimal(20,0)": (pa.decimal128(20, 0), [Decimal(3), Decimal(BIG + 1), Decimal(10**19), Decimal(2**63 - 1)]),
    "float": (pa.float32(), [1.5, -0.0, 0.1, 16777216.0, INF, NAN, 3.0]),
    "double": (pa.float64(), [1.5, 0.0, 0.1, float(BIG), 16777217.0, -INF, NAN, 1e300, 3.0, 2.5]),
}

ZONES = ("UTC", "Asia/Kathmandu", "America/St_Johns", "Europe/Stockholm")
# Days before time zones had whole minutes, at the ends of daylight saving time, and around the epoch.
DAYS = (date(1850, 6, 1), date(1893, 4, 1), date(1969, 12, 31), date(1970, 1, 1), date(2024, 3, 31), date(2024, 10, 27))


def numbers() -> pa.Table:
    columns = {name: pa.array(values, type_) for name, (type_, values) in NUMBERS.items()}
    return pa.table({"id": pa.array(range(12), pa.int64()), **columns})


REALS = {"float", "double"}


# Failure catalogue 75, 77, 78, 81, 82: keys wider or narrower than the column, between its values and beyond its range.
@pytest.mark.parametrize(("format_", "ansi"), [("delta", "true"), ("parquet", "false")])
@pytest.mark.parametrize("key_type", NUMBER_KEYS)
def test_number_keys_of_other_types(oracle, spark, shared_lake, format_, ansi, key_type):
    lake = shared_lake("numbers", format_, numbers, LAYOUT)
    type_, values = NUMBER_KEYS[key_type]
    with conf(spark, {"spark.sql.ansi.enabled": ansi}):
        for at, column in enumerate(NUMBERS):
            # ANSI mode changes only comparisons with floats, so other pairs run with one of the formats.
            if REALS & {column, key_type} or (at + len(key_type)) % 2 == (format_ == "delta"):
                oracle.check(lake, Keys.of(column, pa.array(values, type_)), exact=[at % 2 == 0])


def midnights(zone: str) -> list[datetime]:
    return [datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone)).astimezone(timezone.utc) for day in DAYS]


def moments() -> pa.Table:
    instants = sorted(instant for zone in ZONES for instant in midnights(zone))
    walls = [instant.replace(tzinfo=None) for instant in instants]
    days = [instant.date() for instant in instants]
    return pa.table(
        {
            "id": pa.array(range(len(instants)), pa.int64()),
            "at": pa.array(instants, pa.timestamp("us", "UTC")),
            "wall": pa.array(walls, pa.timestamp("us")),
            "day": pa.array(days, pa.date32()),
        }
    )


def moment_keys(key_type: str, zone: str) -> pa.Array:
    """The days as dates, as the instants at which they begin in `zone`, or as wall-clock times."""
    match key_type:
        case "date":
            return pa.array(DAYS, pa.date32())
        case "timestamp":
            return pa.array(midnights(zone), pa.timestamp("us", "UTC"))
        case _:
            # The last time does not exist where daylight saving time begins on that day.
            return pa.array([f"{day}T00:00:00" for day in DAYS] + ["2024-03-31T02:30:00"]).cast(pa.timestamp("us"))


@pytest.mark.parametrize("key_type", ["date", "timestamp", "timestamp_ntz"])
@pytest.mark.parametrize(("zone", "format_"), [*zip(ZONES, ("delta", "parquet", "parquet", "delta"), strict=True)])
def test_date_and_timestamp_keys_of_other_types(oracle, spark, shared_lake, format_, key_type, zone):
    lake = shared_lake("moments", format_, moments, LAYOUT)
    keys = moment_keys(key_type, zone)
    with conf(spark, {"spark.sql.session.timeZone": zone}):
        for column in ("at", "wall", "day"):
            oracle.check(lake, Keys.of(column, keys), exact=[format_ == "delta"])
