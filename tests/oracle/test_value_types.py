"""Each type of the value space, hit and missed at the level of files and of row groups, in both formats."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from pruning.reasons import ReasonCode
from tests.oracle.answers import Keys
from tests.oracle.oracle import Skips, skips

pytestmark = pytest.mark.spark

ROWS = 60
_FILES, _GROUPS = 4, 12
_EPOCH = datetime(1969, 12, 31, 23, 59, tzinfo=timezone.utc)

# The value of a type at place n, ascending. Rows have every tenth place, so that keys fit between them.
VALUE_OF = {
    "tinyint": (pa.int8(), lambda n: n // 5 - 60),
    "smallint": (pa.int16(), lambda n: 50 * n - 15_000),
    "int": (pa.int32(), lambda n: 7_000_000 * (n - 300)),
    "bigint": (pa.int64(), lambda n: (1 << 53) + n),
    "decimal_7_2": (pa.decimal128(7, 2), lambda n: Decimal(n - 300) / 100),
    "decimal_20_0": (pa.decimal128(20, 0), lambda n: Decimal((n - 300) * 10**15)),
    "decimal_38_10": (pa.decimal128(38, 10), lambda n: Decimal((n - 300) * 10**15) / 10**10),
    "date": (pa.date32(), lambda n: date(1970, 1, 1) + timedelta(days=n - 300)),
    "timestamp": (pa.timestamp("us", "UTC"), lambda n: _EPOCH + timedelta(seconds=37 * n)),
    "timestamp_ntz": (pa.timestamp("us"), lambda n: (_EPOCH + timedelta(seconds=37 * n)).replace(tzinfo=None)),
    "string": (pa.string(), lambda n: f"\u00e4{n:03}\U0001f600"),
    "binary": (pa.binary(), lambda n: bytes([n // 4, 128 + n % 4])),
    "float": (pa.float32(), lambda n: float(np.float32((n - 300) / 8))),
    "double": (pa.float64(), lambda n: (n - 300) / 10),
}
# A Delta log has no bounds for these types.
_UNKNOWN_TO_DELTA = {"binary"}
# Spark's Parquet reader takes no predicate on these types.
_UNKNOWN_TO_THE_READER = {"timestamp_ntz"}


def rows() -> pa.Table:
    columns = {
        name: pa.array([value(10 * at) for at in range(ROWS)], type_) for name, (type_, value) in VALUE_OF.items()
    }
    return pa.table({"id": pa.array(range(ROWS), pa.int64()), **columns})


def keys_at(name: str, *places: int) -> Keys:
    type_, value = VALUE_OF[name]
    return Keys.of(name, pa.array([value(place) for place in places], type_))


def skips_of(format_: str, name: str, row_groups: int) -> Skips:
    """The expected skips of a read of one file with `row_groups` row groups, as far as the format supports them."""
    if name in _UNKNOWN_TO_THE_READER:
        # Parquet rows cannot be skipped by a predicate on this type, which is the reason; Delta skips files by its log.
        reasons = (ReasonCode.NO_READER_FILTER,) if format_ == "parquet" else ()
        return skips((1, _FILES), (3, _GROUPS), *reasons)
    files = _FILES if format_ == "delta" and name in _UNKNOWN_TO_DELTA else 1
    return skips((files, _FILES), (row_groups, _GROUPS))


@pytest.fixture(params=["delta", "parquet"])
def types(request, shared_lake):
    return shared_lake("types", request.param, rows)


# Row n is at place 10 n; file f has rows 15 f to 15 f + 14 in three row groups of five rows.
@pytest.mark.parametrize("name", VALUE_OF)
def test_keys_in_one_row_group_read_one_row_group(oracle, types, name):
    # The first and the last row of the second row group of the second file.
    oracle.check(types, keys_at(name, 200, 240), expected=skips_of(types.format, name, 1))


@pytest.mark.parametrize("name", VALUE_OF)
def test_keys_between_row_groups_and_files_read_no_row_group(oracle, types, name):
    # 195 lies between two row groups of a file, 295 between two files, 599 after the last row.
    oracle.check(types, keys_at(name, 195, 295, 599), expected=skips_of(types.format, name, 0))
