"""Expected results of a read: the semijoin by Spark without pruning, and by DuckDB from plain tables.

Rows are compared by all of their columns: a row with another row's value is a wrong row.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  its usual name

from connectors.columns import quoted, split_name
from sample_data.plain_duckdb import load
from sample_data.rows import Form, Rows, arrow_rows, exact
from tests.oracle.lakes import spark_frame

Offset = Callable[[datetime], timedelta]

_SET = "__oracle_set"
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - wall-clock times are converted explicitly
_MICROSECOND = timedelta(microseconds=1)
_EXACT = Context(prec=80)


@dataclass(frozen=True, slots=True)
class Rules:
    """Session settings that change the meaning of `=`.

    - `offset`: the distance of the session's time zone from UTC at a wall-clock time
    - `ansi`: an integer compared with a single-precision float becomes a double, else a float
    """

    offset: Offset
    ansi: bool


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """Typed keys of one probe column or of a tuple of probe columns, equal for every engine.

    `given` is the argument of `pruned_read()`; None stands for the Arrow data itself.
    """

    columns: tuple[str, ...]
    table: pa.Table
    given: Any = None

    @staticmethod
    def of(columns: str | tuple[str, ...], *arrays: pa.Array, given: Any = None) -> Keys:
        """Keys of one array per column."""
        names = (columns,) if isinstance(columns, str) else columns
        return Keys(names, pa.table({f"k{at}": array for at, array in enumerate(arrays)}), given)

    def __repr__(self) -> str:
        return f"{self.columns!r}: {[str(field.type) for field in self.table.schema]} {self.table.to_pylist()!r}"

    @property
    def identity(self) -> Hashable:
        """Equal iff columns and keys are equal."""
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


def collected(df: DataFrame) -> pa.Table:
    """All rows of `df`. Columns are named by position, because names may repeat or be hostile."""
    # A rename by Spark would be another query, to be analyzed and optimized again.
    return df.toArrow().rename_columns([f"c{at}" for at in range(len(df.columns))])


def rows_of(df: DataFrame, form: Form = exact) -> Rows:
    """All rows of `df`."""
    return Rows(arrow_rows(collected(df)), form)


def spark_semijoin(df: DataFrame, entry: Keys) -> DataFrame:
    """The rows of `df` that match a key, by Spark's own left semi join."""
    keys = spark_frame(df.sparkSession, entry.table.rename_columns(_names(entry)))
    return df.join(keys, on=_pairs(entry), how="left_semi")


def spark_semijoins(df: DataFrame, sets: Sequence[Keys]) -> list[set[int]]:
    """The ids that match each of several key sets of the same columns and types, found by one join."""
    if not sets:
        return []
    numbered = [
        each.table.rename_columns(_names(each)).append_column(_SET, pa.array([at] * len(each.table), pa.int32()))
        for at, each in enumerate(sets)
    ]
    keys = spark_frame(df.sparkSession, pa.concat_tables(numbered))
    found = df.join(keys, on=_pairs(sets[0]), how="inner").select(_SET, "id").distinct().toArrow()
    matching: list[set[int]] = [set() for _ in sets]
    for at, id_ in zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True):
        matching[at].add(id_)
    return matching


def ids_of(df: DataFrame) -> set[int]:
    """The values of the column `id`."""
    return set(df.select("id").toArrow().column(0).to_pylist())


def _names(entry: Keys) -> list[str]:
    """Names that no probe column has."""
    return [f"__oracle_{at}" for at in range(len(entry.columns))]


def _pairs(entry: Keys) -> list[SparkColumn]:
    return [
        F.expr(".".join(map(quoted, split_name(column))) + f" = {name}")
        for column, name in zip(entry.columns, _names(entry), strict=True)
    ]


def duckdb_semijoin(
    duck: duckdb.DuckDBPyConnection, probes: Sequence[pa.Array], entry: Keys, rules: Rules
) -> list[int]:
    """The positions of the rows that match a key, given the probe columns."""
    names = [f"k{at}" for at in range(len(probes))]
    pairs = [
        _comparable(probe, keys.combine_chunks(), rules)
        for probe, keys in zip(probes, entry.table.columns, strict=True)
    ]
    rows = pa.table([pa.array(range(len(probes[0])), pa.int64()), *(probe for probe, _ in pairs)], ["position", *names])
    return _semijoined(duck, rows, pa.table([keys for _, keys in pairs], names), names)


def _semijoined(duck: duckdb.DuckDBPyConnection, rows: pa.Table, keys: pa.Table, names: Sequence[str]) -> list[int]:
    load(duck, "probe", rows)
    load(duck, "build", keys)
    found = duck.execute(f"SELECT position FROM probe SEMI JOIN build USING ({', '.join(names)})").fetchall()
    return [position for (position,) in found]


def probe_of(table: pa.Table, name: str) -> pa.Array:
    """The values of a column or of a nested field, by the name that a caller writes."""
    first, *rest = split_name(name)
    names = table.column_names
    at = names.index(first) if first in names else [each.lower() for each in names].index(first.lower())
    values = table.column(at).to_pylist() if rest else None
    if values is None:
        return table.column(at).combine_chunks()
    type_ = table.column(at).type
    for part in rest:
        values = [None if value is None else value[part] for value in values]
        type_ = type_.field(part).type
    return pa.array(values, type_)


def _comparable(probe: pa.Array, keys: pa.Array, rules: Rules) -> tuple[pa.Array, pa.Array]:
    """Both sides in one type, in which DuckDB's `=` has the meaning of Spark's for the two types."""
    types = (probe.type, keys.type)
    if any(map(pa.types.is_floating, types)):
        single = not rules.ansi and pa.float32() in types and any(map(pa.types.is_integer, types))
        return _floats(probe, single=single), _floats(keys, single=single)
    if any(map(pa.types.is_temporal, types)):
        if types[0] == types[1] and pa.types.is_date(types[0]):
            return probe, keys
        return _instants(probe, rules.offset), _instants(keys, rules.offset)
    if all(map(_is_exact_number, types)) and types[0] != types[1]:
        return _digits(probe), _digits(keys)
    if any(map(_is_text, types)):
        return probe.cast(pa.string()), keys.cast(pa.string())
    return probe, keys


def _floats(array: pa.Array, *, single: bool) -> pa.Array:
    """Numbers rounded once: to single precision for an integer compared with a float. Adding zero makes -0.0
    positive.
    """
    values = array.to_pylist()
    if single and pa.types.is_integer(array.type):
        values = [None if value is None else np.float32(value) for value in values]
    return pa.array([None if value is None else float(value) + 0.0 for value in values], pa.float64())


def _digits(array: pa.Array) -> pa.Array:
    """Exact numbers as their shortest text."""
    values = (None if value is None else Decimal(value).normalize(_EXACT) for value in array.to_pylist())
    return pa.array([None if value is None else f"{value + 0:f}" for value in values], pa.string())


def _instants(array: pa.Array, offset: Offset) -> pa.Array:
    """Dates, wall-clock times and instants as microseconds since 1970 in UTC; `offset` converts the former two."""
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        return array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
    return pa.array([None if value is None else _instant(value, offset) for value in array.to_pylist()], pa.int64())


def _instant(value: date | datetime, offset: Offset) -> int:
    local = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)  # noqa: DTZ001
    return (local - _EPOCH - offset(local)) // _MICROSECOND


def _is_exact_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_decimal(type_))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))
