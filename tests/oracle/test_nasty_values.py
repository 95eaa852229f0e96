"""The catalogue of nasty values: every value once as a key, with and without NULL beside it, on both formats."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pruning.reasons import ReasonCode
from sample_data.nasty import tables
from tests.oracle.answers import Keys
from tests.oracle.lakes import Layout
from tests.oracle.oracle import Skips, skips

pytestmark = pytest.mark.spark

# Unsigned and nested types, names and partitions have tests of their own.
CATALOGUE = ("integers", "floats", "decimals", "strings", "binaries", "booleans", "dates", "timestamps", "all_null")
COLUMNS = [(table, column) for table in CATALOGUE for column in tables()[table].column_names if column != "id"]
SETS = 3
LAYOUT = Layout(file_rows=4, group_rows=2)
# Parquet writers leave out bounds of more bytes.
LONG = 4096


def key_sets(table: str, column: str) -> list[Keys]:
    """Every value of the column in one of a few sets, of which the last holds NULL too."""
    values = tables()[table].column(column).combine_chunks()
    some = values.drop_null()
    parts = [some.take(pa.array(range(at, len(some), SETS), pa.int64())) for at in range(SETS)]
    return [Keys.of(column, part) for part in parts[:-1]] + [
        Keys.of(column, pa.concat_arrays([parts[-1], pa.nulls(1, values.type)]))
    ]


def sortable(value: Any) -> Any:
    """The value as its type's statistics order it."""
    return value.encode() if isinstance(value, str) else value


def files_around(keys: Keys, rows: pa.Table) -> int:
    """How many files have a key between their least and greatest value, those without statistics among them."""
    wanted = [sortable(key) for key in keys.table.column(0).to_pylist() if key is not None]
    kept = 0
    for begin in range(0, len(rows), LAYOUT.file_rows):
        values = rows.column(keys.columns[0]).slice(begin, LAYOUT.file_rows).to_pylist()
        found = [sortable(value) for value in values if value is not None]
        has_bounds = not found or sum(len(end) for end in (min(found), max(found)) if isinstance(end, bytes)) < LONG
        kept += bool(found) and (not has_bounds or any(min(found) <= key <= max(found) for key in wanted))
    return kept


@pytest.mark.parametrize("format_", ["delta", "parquet"])
@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_no_value_is_lost_and_every_file_without_a_key_is_skipped(oracle, shared_lake, format_, table, column):
    rows = tables()[table]
    lake = shared_lake(table, format_, lambda: rows, LAYOUT)
    sets = key_sets(table, column)
    oracle.prepare(lake, sets)
    for at, keys in enumerate(sets):
        # Microseconds rather than Python's dates, and bounds that a Delta log keeps as they are.
        plain = format_ == "parquet" or table in {"integers", "dates"}
        files = (files_around(keys, rows), -(-len(rows) // LAYOUT.file_rows)) if plain and table != "floats" else None
        nan = any(key != key for key in keys.table.column(0).to_pylist())  # noqa: PLR0124 - NaN is not itself
        reasons = (ReasonCode.NAN_KEYS,) if nan else ()
        # Spark's reader takes no predicate on a moment without a zone, of which Delta keeps what it cannot tell apart.
        expected = Skips(files) if column == "wall_clock" else skips(files, None, *reasons)
        oracle.check(lake, keys, exact=[at % 2 == 0], expected=expected)
