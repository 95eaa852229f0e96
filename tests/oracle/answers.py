"""What a read must return: the semijoin by Spark without pruning, and by DuckDB from plain tables.

Rows are compared as tuples of canonical values, all columns of them: a row with another row's value is a wrong row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  its usual name

from connectors.columns import quoted, split_name
from tests.oracle.lakes import spark_frame

Rows = Counter[tuple[Any, ...]]

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - wall-clock times are converted by hand
_MICROSECOND = timedelta(microseconds=1)
_EXACT = Context(prec=80)


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """The keys of one probe column, or of a tuple of them: typed, so that every engine gets the same ones.

    `given` is what `pruned_read()` gets; the Arrow data itself if None.
    """

    columns: tuple[str, ...]
    table: pa.Table
    given: Any = None

    @staticmethod
    def of(columns: str | tuple[str, ...], *arrays: pa.Array, given: Any = None) -> Keys:
        """Keys of as many arrays as there are columns."""
        names = (columns,) if isinstance(columns, str) else columns
        return Keys(names, pa.table({f"k{at}": array for at, array in enumerate(arrays)}), given)

    @property
    def identity(self) -> Hashable:
        """Equal just where columns and keys are."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.table.schema) as writer:
            writer.write_table(self.table)
        return self.columns, sink.getvalue().to_pybytes()

    @property
    def entry(self) -> tuple[str | tuple[str, ...], Any]:
        """The item of the mapping that `pruned_read()` takes."""
        if len(self.columns) == 1:
            return self.columns[0], self.table.column(0) if self.given is None else self.given
        return self.columns, self.table if self.given is None else self.given


def canonical_rows(table: pa.Table) -> Rows:
    """Every row as a tuple that is equal just where the rows are: NaN, zeros, scales and microseconds tell."""
    return Counter(canonical_list(table))


def canonical_list(table: pa.Table) -> list[tuple[Any, ...]]:
    """The same, in the order of the table."""
    return list(zip(*(_canonical(column) for column in table.columns), strict=True))


def collected(df: DataFrame) -> pa.Table:
    """All rows of `df`; its columns are called by their position, since names may repeat or be hostile."""
    return df.toDF(*(f"c{at}" for at in range(len(df.columns)))).toArrow()


def spark_semijoin(df: DataFrame, entries: Sequence[Keys]) -> DataFrame:
    """The rows of `df` that match every entry, by Spark's own left semi joins."""
    for entry in entries:
        keys = spark_frame(df.sparkSession, entry.table)
        # Under names that no probe column has.
        renamed = {key: f"__oracle_{key}" for key in entry.table.column_names}
        keys = keys.withColumnsRenamed(renamed)
        pairs = [
            F.expr(".".join(map(quoted, split_name(column))) + f" = {renamed[key]}")
            for column, key in zip(entry.columns, entry.table.column_names, strict=True)
        ]
        df = df.join(keys, on=pairs, how="left_semi")
    return df


def duckdb_semijoin(
    duck: duckdb.DuckDBPyConnection, probes: Mapping[str, pa.Array], entries: Sequence[Keys], zone: str
) -> list[int]:
    """The positions of the rows that match every entry; `probes` holds the probe columns by name."""
    count = len(next(iter(probes.values())))
    positions = set(range(count))
    for entry in entries:
        pairs = [
            _comparable(probes[column], keys.combine_chunks(), zone)
            for column, keys in zip(entry.columns, entry.table.columns, strict=True)
        ]
        names = [f"k{at}" for at in range(len(pairs))]
        rows = pa.table(
            {"position": pa.array(range(count), pa.int64()), **dict(zip(names, [a for a, _ in pairs], strict=True))}
        )
        keys = pa.table(dict(zip(names, [b for _, b in pairs], strict=True)))
        positions &= set(_semijoined(duck, rows, keys, names))
    return sorted(positions)


def _semijoined(duck: duckdb.DuckDBPyConnection, rows: pa.Table, keys: pa.Table, names: Sequence[str]) -> list[int]:
    duck.register("rows_arrow", rows)
    duck.register("keys_arrow", keys)
    try:
        # Plain tables, so that no filter reaches Arrow data.
        duck.execute("CREATE OR REPLACE TEMP TABLE probe AS SELECT * FROM rows_arrow")
        duck.execute("CREATE OR REPLACE TEMP TABLE build AS SELECT * FROM keys_arrow")
        found = duck.execute(f"SELECT position FROM probe SEMI JOIN build USING ({', '.join(names)})").fetchall()
    finally:
        duck.unregister("rows_arrow")
        duck.unregister("keys_arrow")
    return [at for (at,) in found]


def probe_of(table: pa.Table, schema_names: Sequence[str], name: str) -> pa.Array:
    """The values under a column name as a caller writes it, through structs where it is nested."""
    first, *rest = split_name(name)
    lowered = [each.lower() for each in schema_names]
    at = schema_names.index(first) if first in schema_names else lowered.index(first.lower())
    values = table.column(at).to_pylist() if rest else None
    if values is None:
        return table.column(at).combine_chunks()
    type_ = table.column(at).type
    for part in rest:
        values = [None if value is None else value[part] for value in values]
        type_ = type_.field(part).type
    return pa.array(values, type_)


def _canonical(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist()
    if pa.types.is_floating(column.type):
        return [None if value is None else repr(value) for value in column.to_pylist()]
    if pa.types.is_nested(column.type):
        return [repr(value) for value in column.to_pylist()]
    return [str(value) if isinstance(value, Decimal) else value for value in column.to_pylist()]


def _comparable(probe: pa.Array, keys: pa.Array, zone: str) -> tuple[pa.Array, pa.Array]:
    """Both sides in one type, in which DuckDB's `=` means what Spark's means for the two."""
    types = (probe.type, keys.type)
    if any(map(pa.types.is_floating, types)):
        return _doubles(probe), _doubles(keys)
    if any(map(pa.types.is_temporal, types)):
        if types[0] == types[1] and pa.types.is_date(types[0]):
            return probe, keys
        return _instants(probe, zone), _instants(keys, zone)
    if all(map(_is_exact_number, types)) and types[0] != types[1]:
        return _digits(probe), _digits(keys)
    if any(map(_is_text, types)):
        return probe.cast(pa.string()), keys.cast(pa.string())
    return probe, keys


def _doubles(array: pa.Array) -> pa.Array:
    # Python rounds decimals and integers once; adding zero makes -0.0 positive.
    return pa.array([None if value is None else float(value) + 0.0 for value in array.to_pylist()], pa.float64())


def _digits(array: pa.Array) -> pa.Array:
    """Exact numbers as their shortest text."""
    values = (None if value is None else Decimal(value).normalize(_EXACT) for value in array.to_pylist())
    return pa.array([None if value is None else f"{value + 0:f}" for value in values], pa.string())


def _instants(array: pa.Array, zone: str) -> pa.Array:
    """Dates, wall-clock times and instants as microseconds since 1970 in UTC, the former two read in `zone`."""
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        return array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
    return pa.array([None if value is None else _instant(value, zone) for value in array.to_pylist()], pa.int64())


def _instant(value: date | datetime, zone: str) -> int:
    local = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)  # noqa: DTZ001
    offset = local.replace(tzinfo=ZoneInfo(zone)).utcoffset()
    assert offset is not None
    return (local - _EPOCH - offset) // _MICROSECOND


def _is_exact_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_decimal(type_))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))
