"""Reads row groups of Parquet files with pyarrow, keys first: what Spark's Python workers run for an Arrow scan.

Imports nothing but the core and Arrow. Types are those that `arrow_types.py` has allowed beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from connectors.arrow_values import coded
from pruning.intervals import BoolArray
from pruning.row_set import RowSet
from pruning.value_type import ValueType

_ROWS_PER_BATCH = 1 << 16
# A test that lets nearly everything pass costs more than it saves; so many rows say that it does.
_USELESS, _ENOUGH_ROWS = 0.95, 100_000


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """A column of the result: its name, and its type in Arrow, which is the one that Spark takes for its own."""

    name: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class KeyTest:
    """What rows must hold in the result's column at `column`, which has this type in Spark."""

    column: int
    type: ValueType
    rows: RowSet


@dataclass(frozen=True, slots=True)
class FilePart:
    """Row groups of one file.

    - `leaves`: for each column of the result the leaf of the file that holds it, None where it has none
    - `constants`: for each column without a leaf the value of all its rows
    - `footer`: the file's footer, which is then not read again; None to read it
    """

    path: str
    row_groups: tuple[int, ...]
    leaves: tuple[int | None, ...]
    constants: tuple[pa.Scalar | None, ...]
    footer: bytes | None = None


@dataclass(slots=True)
class Counts:
    """What was read.

    - `bytes`: compressed bytes of column chunks, and of the footers that were not given
    - `rows`: those of the `row_groups`, whether or not a key was found in each; `row_groups_used` are those in which
    - `rows_passed`: those that have a key in every column
    """

    bytes: int = 0
    files: set[str] = field(default_factory=set)
    row_groups: int = 0
    row_groups_used: int = 0
    rows: int = 0
    rows_passed: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.bytes + other.bytes,
            self.files | other.files,
            self.row_groups + other.row_groups,
            self.row_groups_used + other.row_groups_used,
            self.rows + other.rows,
            self.rows_passed + other.rows_passed,
        )


@dataclass(slots=True)
class _Watched:
    """A test, and how many of the rows that it was asked about have passed."""

    test: KeyTest
    asked: int = 0
    passed: int = 0

    @property
    def ratio(self) -> float:
        return self.passed / self.asked if self.asked else 0.5

    @property
    def is_useless(self) -> bool:
        return self.asked >= _ENOUGH_ROWS and self.ratio >= _USELESS


@dataclass(slots=True)
class ArrowReader:
    """The rows of file parts that pass all tests; the order of tests follows what they were seen to drop."""

    columns: Sequence[ReadColumn]
    tests: Sequence[KeyTest]
    counts: Counts = field(default_factory=Counts)
    _watched: list[_Watched] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._watched = [_Watched(each) for each in self.tests]

    @property
    def schema(self) -> pa.Schema:
        """Of every batch."""
        return pa.schema([(each.name, each.type) for each in self.columns])

    def read(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        """The rows of one file part, in its order."""
        metadata = None if part.footer is None else pq.read_metadata(pa.BufferReader(part.footer))
        self.counts.files.add(part.path)
        with pq.ParquetFile(part.path, metadata=metadata, pre_buffer=False) as file:
            self.counts.bytes += 0 if part.footer is not None else file.metadata.serialized_size
            for at in part.row_groups:
                yield from self._read_group(_Group(file, at, part, self.columns, self.counts))

    def _read_group(self, group: _Group) -> Iterator[pa.RecordBatch]:
        self.counts.row_groups += 1
        self.counts.rows += group.rows
        self._watched.sort(key=lambda each: each.ratio)
        passing: BoolArray | None = None
        for each in self._watched:
            if each.is_useless:
                continue
            found = _passing(each.test, group)
            each.asked, each.passed = each.asked + len(found), each.passed + int(np.count_nonzero(found))
            passing = found if passing is None else passing & found
            if not passing.any():
                return
        self.counts.row_groups_used += 1
        mask = None if passing is None or passing.all() else pa.array(passing)
        arrays = [group.column(at) for at in range(len(self.columns))]
        table = pa.Table.from_arrays(arrays, schema=self.schema)
        chosen = table if mask is None else table.filter(mask)
        self.counts.rows_passed += len(chosen)
        yield from chosen.to_batches(_ROWS_PER_BATCH)


@dataclass(slots=True)
class _Group:
    """One row group, of which each column is read when it is asked for, and once."""

    file: pq.ParquetFile
    at: int
    part: FilePart
    columns: Sequence[ReadColumn]
    counts: Counts
    _read: dict[int, pa.ChunkedArray] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return int(self.file.metadata.row_group(self.at).num_rows)

    def column(self, index: int) -> pa.ChunkedArray:
        if index not in self._read:
            self._read[index] = self._column(index)
        return self._read[index]

    def _column(self, index: int) -> pa.ChunkedArray:
        leaf, type_ = self.part.leaves[index], self.columns[index].type
        if leaf is None:
            value = self.part.constants[index]
            constant = pa.nulls(self.rows, type_) if value is None else pa.repeat(value.cast(type_), self.rows)
            return pa.chunked_array([constant])
        self.counts.bytes += self.file.metadata.row_group(self.at).column(leaf).total_compressed_size
        table = self.file.reader.read_row_group(self.at, column_indices=[leaf], use_threads=False)
        return as_type(table.column(0), type_)


def _passing(test: KeyTest, group: _Group) -> BoolArray:
    values = coded(group.column(test.column), test.type)
    found = test.rows.contains(values.codes) & values.valid
    return found | values.nan if test.rows.nan else found


def as_type(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """The same values in another type of the same bytes, or a wider one."""
    if column.type == type_:
        return column
    if pa.types.is_string(type_) and pa.types.is_binary(column.type):
        # Spark takes the bytes for text, whatever they are.
        return pa.chunked_array([chunk.view(type_) for chunk in column.chunks], type_)
    return column.cast(type_)
