"""Random tables from a seed: a few that share values, in several files each, Delta and Parquet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from tests.oracle.draws import Draws
from tests.oracle.lakes import Layout, write
from tests.oracle.random_cases import DRAW

# The type of each kind of column.
TYPES: Mapping[str, pa.DataType] = {kind: type_ for kind, (type_, _) in DRAW.items()}
INTEGERS, EXACT = ("small", "int", "long"), ("small", "int", "long", "money")
TEMPORAL = ("day", "at", "wall")
FAMILIES = (("int", "int", "long", "int", "small", "money", "real"), TEMPORAL, ("text",), ("raw",))
# Kinds whose files with a key are known from the values, because bounds are not wider than the values.
SURE = ("int", "int", "long", "small", "money", "day")

_PLAIN = ("k", "m", "x", "y", "z", "w", "v")
_HOSTILE = ("a.b", "UPPER", "tick`tick", "select", "\u00e4\U0001f600", "it's", "a")
# Delta allows these names only with column mapping.
_SPACED = ("b c", 'say "x"', "x=1", "(paren)", "comma,", "semi;colon", "new\nline")
_FORBIDDEN = frozenset(" ,;{}()\n\t=")
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """One table: `kinds` of its columns by name, its rows, and their layout.

    - `sorted_by`: the column by which rows are sorted into files; empty if there is none
    - `writer`: `parquet`, `delta` (written by Spark), `delta-rs`, or `deleted`: Delta with deletion vectors
    """

    name: str
    kinds: Mapping[str, str]
    rows: pa.Table
    file_rows: int
    group_rows: int
    writer: str
    sorted_by: str = ""
    partition_by: str = ""

    @property
    def written(self) -> pa.Table:
        """The rows that are written first: rows in a deletion vector stay in the files and in the statistics."""
        if self.writer != "deleted":
            return self.rows
        gone = self.rows.slice(0, 3)
        return pa.concat_tables([self.rows, gone.set_column(0, "id", pa.array([-1] * len(gone), pa.int32()))])

    def __repr__(self) -> str:
        columns = ", ".join(f"{name!r} {TYPES[kind]}" for name, kind in self.kinds.items())
        laid = f"{len(self.rows)} rows, {self.file_rows} a file, {self.group_rows} a row group"
        cut = f", sorted by {self.sorted_by!r}" if self.sorted_by else ""
        cut += f", partitioned by {self.partition_by!r}" if self.partition_by else ""
        return f"{self.name} ({columns}): {self.writer}, {laid}{cut}"


@dataclass(frozen=True, slots=True, eq=False)
class RandomLake:
    """Tables, and for each kind of column the few values that all columns draw from, so that keys hit and miss."""

    tables: tuple[Table, ...]
    pools: Mapping[str, Sequence[Any]]


def random_lake(seed: int) -> RandomLake:
    """The tables of a seed: one or two larger ones that are clustered by a key, and some smaller ones.

    The files of the first table with a given key are known from its values, and the last table has some of these keys.
    """
    draws = Draws(f"lake {seed}")
    pools = _pools(draws)
    families = (FAMILIES[0], draws.choice(FAMILIES))
    facts = 1 + draws.below(2)
    count = facts + 1 + draws.below(3)
    first = _table(draws, "t0", pools, ((draws.choice(SURE),), families[1]), is_fact=True, is_sure=True)
    rest = [_table(draws, f"t{at}", pools, families, is_fact=at < facts) for at in range(1, count - 1)]
    key = first.kinds[first.sorted_by]
    last = _table(draws, f"t{count - 1}", _half_as(first, pools), ((key,), families[1]), is_fact=False, is_sure=True)
    return RandomLake((first, *rest, last), pools)


def _half_as(table: Table, pools: Mapping[str, Sequence[Any]]) -> Mapping[str, Sequence[Any]]:
    """Pools with half of the clustered values of a table, and a few that it lacks."""
    kind = table.kinds[table.sorted_by]
    own = table.rows.column(table.sorted_by).unique().drop_null().to_pylist()
    others = [each for each in pools[kind] if each not in own]
    return {**pools, kind: [*own[::2], *others[:3]]}


def _pools(draws: Draws) -> dict[str, list[Any]]:
    numbers = draws.sample(range(-100, 160), 12 + draws.below(20))
    days = [_EPOCH + timedelta(days=each) for each in numbers]
    midnights = [datetime.combine(each, time(), timezone.utc) for each in days]
    moments = [*midnights, *(each + timedelta(microseconds=1 + draws.below(1500)) for each in midnights[::3])]
    random = draws._random
    real = [float(each) for each in numbers]
    pools: dict[str, list[Any]] = {
        "small": [each for each in numbers if each < 128] + [-128, 127],
        "int": [*numbers, -(2**31), 2**31 - 1],
        "long": [*numbers, 2**53 + 1, -(2**63), 2**63 - 1],
        "money": [*map(Decimal, numbers), *(Decimal(each) / 4 for each in numbers[::3])],
        "real": [*real, *real, *(each / 8 for each in real[::4]), -0.0, 0.0, math.nan, math.inf, 1e300],
        "single": [*real, -0.0, math.nan, 2.0**-149],
        "day": [*days, date(1, 1, 1), date(1582, 10, 4), date(9999, 12, 31)],
        "at": moments,
        "wall": [each.replace(tzinfo=None) for each in moments],
    }
    for kind in ("wide", "text", "raw", "flag"):
        pools[kind] = [DRAW[kind][1](random) for _ in range(20)]
    pools["text"] += [str(each) for each in numbers[::2]]
    return pools


def _table(
    draws: Draws,
    name: str,
    pools: Mapping[str, Sequence[Any]],
    families: Any,
    *,
    is_fact: bool,
    is_sure: bool = False,
) -> Table:
    kinds = [draws.choice(families[0]), draws.choice(families[1])]
    kinds += [draws.choice(list(TYPES)) for _ in range(1 + draws.below(3))]
    few = (12, 20, 30) if is_sure else (0, 1, 5, 12, 12, 20, 30, 30)
    count = 60 + draws.below(90) if is_fact else draws.choice(few)
    writer = draws.choice(("parquet",) * 5 + ("delta-rs",) * 4 + ("delta", "deleted"))
    names = _names(draws, len(kinds), is_delta_rs=writer == "delta-rs")
    sorted_by = names[0 if is_sure else draws.below(2)] if is_fact or draws.chance(40) else ""
    columns = {"id": "int", **dict(zip(names, kinds, strict=True))}
    values = {each: _values(draws, pools[kind], count, kind) for each, kind in columns.items() if each != "id"}
    if is_sure:
        values[names[0]] = _keys(draws, pools[kinds[0]], count)
    order = list(range(count))
    if sorted_by:
        order.sort(key=lambda at: sort_key(values[sorted_by][at]))
    arrays = [pa.array(range(count), pa.int32())]
    arrays += [pa.array([values[each][at] for at in order], TYPES[columns[each]]) for each in names]
    file_rows = draws.choice((8, 15, 30)) if is_fact else draws.choice((1000, 1000, 1000 if is_sure else 10))
    # Folders escape other names.
    partitions = [each for each in names if columns[each] in ("int", "small", "day") and each.isidentifier()]
    partition_by = draws.choice(partitions) if partitions and draws.chance(20) and writer != "deleted" else ""
    rows = pa.table(arrays, list(columns))
    return Table(name, columns, rows, file_rows, draws.choice((5, 10, 1000)), writer, sorted_by, partition_by)


def _names(draws: Draws, count: int, *, is_delta_rs: bool) -> list[str]:
    if draws.chance(60):
        return list(_PLAIN[:count])
    return draws.sample(_HOSTILE if is_delta_rs else (*_HOSTILE, *_SPACED), count)


def _values(draws: Draws, pool: Sequence[Any], count: int, kind: str) -> list[Any]:
    nulls = draws.choice((0, 10, 40)) if count else 0
    # A part of the values, so that some keys of other tables are missing.
    own = draws.sample(pool, len(pool) if kind == "flag" else max(3, len(pool) * 2 // 3))
    return [None if draws.chance(nulls) else draws.choice(own) for _ in range(count)]


def _keys(draws: Draws, pool: Sequence[Any], count: int) -> list[Any]:
    """Values that tables partly share, and NULL, which a null-safe equality matches."""
    own = draws.sample(pool, max(8, len(pool) * 2 // 3))
    return [None if at % 5 == 0 else draws.choice(own) for at in range(count)]


def sort_key(value: Any) -> Any:
    """A sort key with NULL first, then Spark's order of values."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (1, value != value, value)  # noqa: PLR0124 - NaN is greatest, as in Spark
    return (1, value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value)


def stored(spark: SparkSession, folder: Path, table: Table) -> DataFrame:
    """Writes a table below `folder`, and returns it as Spark reads it."""
    put(spark, folder, table)
    return opened(spark, str(folder / table.name), table)


def opened(spark: SparkSession, source: str, table: Table) -> DataFrame:
    """A table as Spark reads it from `source`."""
    if table.writer != "parquet":
        return spark.read.format("delta").load(source)
    return spark.read.schema(from_arrow_schema(table.rows.schema, prefer_timestamp_ntz=True)).parquet(source)


def put(spark: SparkSession, folder: Path, table: Table) -> None:
    """Writes a table to a folder of its name below `folder`."""
    path = folder / table.name
    match table.writer:
        case "parquet":
            _parquet(path, table)
        case "delta-rs":
            parts = [table.partition_by] if table.partition_by else None
            for at in range(0, max(1, len(table.rows)), table.file_rows):
                rows = table.rows.slice(at, table.file_rows)
                write_deltalake(str(path), rows, mode="append", partition_by=parts)
        case _:
            _delta(spark, path, table)


def _parquet(path: Path, table: Table) -> None:
    path.mkdir()
    for number, at in enumerate(range(0, len(table.rows), table.file_rows)):
        rows = table.rows.slice(at, table.file_rows)
        if table.partition_by:
            schema = pa.schema([table.rows.schema.field(table.partition_by)])
            name = f"part{number}-{{i}}.parquet"
            partitioning = ds.partitioning(schema, flavor="hive")
            options = {"existing_data_behavior": "overwrite_or_ignore", "max_rows_per_group": table.group_rows}
            ds.write_dataset(rows, path, format="parquet", partitioning=partitioning, basename_template=name, **options)
        else:
            pq.write_table(rows, path / f"part{number}.parquet", row_group_size=table.group_rows)


def _delta(spark: SparkSession, path: Path, table: Table) -> None:
    options = {}
    if any(_FORBIDDEN & set(name) for name in table.kinds):
        options["delta.columnMapping.mode"] = "name"
    if table.writer == "deleted":
        options["delta.enableDeletionVectors"] = "true"
    parts = (table.partition_by,) if table.partition_by else ()
    confs = {"spark.sql.shuffle.partitions": "1"}
    write(
        spark,
        path,
        "delta",
        table.written,
        Layout(table.file_rows, table.group_rows, parts),
        options=options,
        confs=confs,
    )
    if table.writer == "deleted":
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = -1").collect()
