"""The row-group limit of a star join: the fewest bytes possible by skipping row groups.

It is computed from all rows, without Spark and without statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.demo.star_join import StarJoin
from pruning.values.byte_strings import IntArray
from pruning.values.ranges import BoolArray

_HALF = 32


@dataclass(frozen=True, slots=True)
class Limit:
    """Files, row groups, and bytes of needed columns that hold at least one row that passes every filter.

    `row_groups_total` and `bytes_total` count the whole table.
    """

    files: int
    row_groups: int
    bytes: int
    row_groups_total: int
    bytes_total: int


def limit(join: StarJoin, folder: Path, keys: Mapping[tuple[str, ...], Sequence[tuple[int, ...]]]) -> Limit:
    """The limit of a join over the Parquet files of a folder; `keys` maps probe columns to their keys."""
    needed = {
        column: _packed(np.array(rows, np.int64).reshape(len(rows), len(column))) for column, rows in keys.items()
    }
    files = row_groups = size = total_groups = total_size = 0
    for path in sorted(folder.glob("*.parquet")):
        with pq.ParquetFile(path) as file:
            survivors = 0
            for at in range(file.num_row_groups):
                chunks = _chunk_bytes(file.metadata.row_group(at), join)
                total_groups, total_size = total_groups + 1, total_size + chunks
                if _survives(file, at, needed):
                    survivors, size = survivors + 1, size + chunks
            files, row_groups = files + (survivors > 0), row_groups + survivors
    return Limit(files, row_groups, size, total_groups, total_size)


def _chunk_bytes(group: pq.RowGroupMetaData, join: StarJoin) -> int:
    chunks = [group.column(at) for at in range(group.num_columns)]
    return sum(chunk.total_compressed_size for chunk in chunks if join.mentions(chunk.path_in_schema))


def _survives(file: pq.ParquetFile, at: int, keys: Mapping[tuple[str, ...], IntArray]) -> bool:
    rows = file.read_row_group(at, columns=sorted({name for columns in keys for name in columns}))
    passing = np.ones(rows.num_rows, bool)
    for columns, wanted in keys.items():
        passing &= _among(rows, columns, wanted)
    return bool(passing.any())


def _among(rows: pa.Table, columns: tuple[str, ...], wanted: IntArray) -> BoolArray:
    known = np.logical_and.reduce([~np.asarray(rows[name].is_null()) for name in columns])
    values = np.stack([np.asarray(rows[name].fill_null(0)).astype(np.int64) for name in columns], axis=1)
    found: BoolArray = np.isin(_packed(values), wanted) & known
    return found


def _packed(rows: IntArray) -> IntArray:
    """One integer for each row of one or two columns; the second must fit 32 bits, as TPC-DS surrogate keys do."""
    return rows[:, 0] if rows.shape[1] == 1 else (rows[:, 0] << _HALF) | rows[:, 1]
