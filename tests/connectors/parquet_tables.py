"""Helpers that open, prune and read Parquet tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.columns import Column, resolve
from connectors.parquet.table import ParquetTable, open_parquet
from pruning.scan.skipping import PruningResult, prune_containers
from pruning.values.domain import Domain
from sample_data.rows import Rows


def opened(spark, source: Path | str, **options) -> ParquetTable:
    table = open_parquet(spark, str(source), **options)
    assert isinstance(table, ParquetTable)
    return table


def columns(table: ParquetTable, *names: str, case_sensitive: bool = False) -> list[Column]:
    partitions = table.partition_columns
    return [
        resolve(table.schema, name, table=table.name, case_sensitive=case_sensitive, partitions=partitions)
        for name in names
    ]


def pruned(table: ParquetTable, keys: dict[str, Sequence[object]]) -> PruningResult:
    """The files that may have a row with these keys in every column."""
    wanted = dict(zip(keys, columns(table, *keys), strict=True))
    domains = {wanted[name].name: Domain.of(wanted[name].type, *values) for name, values in keys.items()}
    return prune_containers(table.files(list(wanted.values())), domains)


def scanned(df) -> tuple[Rows, int, int]:
    """The rows of a DataFrame that is one scan, and how many files and rows that scan read."""
    rows = Rows(df.collect())
    leaves = df._jdf.queryExecution().executedPlan().collectLeaves()
    assert leaves.size() == 1
    metrics = leaves.head().metrics()
    return rows, metrics.apply("numFiles").value(), metrics.apply("numOutputRows").value()


def in_files(directory: Path, *tables: pa.Table, **options) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for index, table in enumerate(tables):
        pq.write_table(table, directory / f"{index}.parquet", **options)
    return directory


def numbered(*starts: int, count: int = 10) -> list[pa.Table]:
    return [pa.table({"id": range(start, start + count), "v": [f"v{start}"] * count}) for start in starts]


def by_name(table: ParquetTable, *wanted: str, **options) -> dict[str, tuple[str, ...]]:
    """The domains of some columns of each file, by the file's name."""
    found = table.files(columns(table, *wanted, **options))
    texts = [tuple(map(str, found[index].domains.values())) for index in range(len(found))]
    return dict(sorted(zip((name.rsplit("/", 1)[1] for name in found.names), texts, strict=True)))
