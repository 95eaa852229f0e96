"""Every edge-case value once as a key, with and without NULL, in both formats."""

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

# Unsigned and nested types, names and partitions have their own tests.
CATALOGUE = ("integers", "floats", "decimals", "strings", "binaries", "booleans", "dates", "timestamps", "all_null")
COLUMNS = [(table, column) for table in CATALOGUE for column in tables()[table].column_names if column != "id"]
SETS = 3
LAYOUT = Layout(file_rows=4, group_rows=2)
# Parquet writers omit longer bounds.
LONG = 4096


def key_sets(table: str, column: str) -> list[Keys]:
    """A few sets that together have every value of the column; the last one has NULL, too."""
    values = tables()[table].column(column).combine_chunks()
    some = values.drop_null()
    parts = [some.take(pa.array(range(at, len(some), SETS), pa.int64())) for at in range(SETS)]
    return [Keys.of(column, part) for part in parts[:-1]] + [
        Keys.of(column, pa.concat_arrays([parts[-1], pa.nulls(1, values.type)]))
    ]


def sortable(value: Any) -> Any:
    """A sort key in the order of the type's statistics."""
    return value.encode() if isinstance(value, str) else value


def files_around(keys: Keys, rows: pa.Table) -> int:
    """The number of files with a key within their bounds, plus those without statistics."""
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
def test_every_value_is_found_and_files_without_keys_are_skipped(oracle, shared_lake, format_, table, column):
    rows = tables()[table]
    lake = shared_lake(table, format_, lambda: rows, LAYOUT)
    sets = key_sets(table, column)
    oracle.prepare(lake, sets)
    for at, keys in enumerate(sets):
        # Tables with bounds that a Delta log keeps exactly, and without microseconds beyond Python's dates.
        plain = format_ == "parquet" or table in {"integers", "dates"}
        files = (files_around(keys, rows), -(-len(rows) // LAYOUT.file_rows)) if plain and table != "floats" else None
        nan = any(key != key for key in keys.table.column(0).to_pylist())  # noqa: PLR0124 - NaN differs from itself
        reasons = (ReasonCode.NAN_KEYS,) if nan else ()
        # Spark's reader takes no predicate on timestamps without a time zone, and Delta keeps files whose truncated
        # bounds match.
        expected = Skips(files) if column == "wall_clock" else skips(files, None, *reasons)
        oracle.check(lake, keys, exact=[at % 2 == 0], expected=expected)
