"""`ArrowReader` reads row groups of Parquet files with pyarrow, keys first; Spark's Python workers run it.

The module imports only the core and Arrow. The types were checked by `partition.py` beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from connectors.arrow_scan.files import FilePart, OpenFile, Range, open_file
from connectors.arrow_scan.row_filter import ArrowRowFilter
from connectors.arrow_scan.s3 import S3Access
from pruning.keys.membership import MembershipTest
from pruning.limits import LIMITS, Limits
from pruning.values.ranges import BoolArray
from pruning.values.types import ValueType


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """A column of the result: its name, and the Arrow type that Spark expects."""

    name: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class KeyTest:
    """The test of the result's column number `column` by keys; `type` is its Spark type."""

    column: int
    type: ValueType
    rows: MembershipTest


@dataclass(slots=True)
class Counts:
    """Counts of a reader.

    - `bytes`: compressed bytes of column chunks and of footers that were read; for a store, the bytes that it sent
    - `rows`: rows of all `row_groups`; `row_groups_used`: row groups in which a key was found
    - `rows_passed`: rows that have a key in every column
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
    """A test with the number of rows that it tested and that passed."""

    test: KeyTest
    row_filter: ArrowRowFilter
    limits: Limits
    asked: int = 0
    passed: int = 0

    @property
    def ratio(self) -> float:
        return self.passed / self.asked if self.asked else 0.5

    @property
    def is_useless(self) -> bool:
        return self.asked >= self.limits.observed_rows and self.ratio >= self.limits.useless_pass_ratio


@dataclass(slots=True)
class ArrowReader:
    """The rows of file parts that pass the tests; tests are ordered by the share of rows that they dropped so far.

    Memory: the keys of all tests; of one row group some bytes a row, up to `kept_key_bytes` of decoded key columns, and
    the chunks, as they are stored, of the columns that are read together (one key column, or all others); and a few
    batches; of a store what `files.py` reads ahead. A batch has at first `first_batch_rows`, then as many as are
    `batch_bytes` if they are as large as those of the batch before.

    `stores` are the buckets in which parts lie.
    """

    columns: Sequence[ReadColumn]
    tests: Sequence[KeyTest]
    stores: Mapping[str, S3Access] = field(default_factory=dict)
    limits: Limits = LIMITS
    counts: Counts = field(default_factory=Counts)
    _watched: list[_Watched] = field(default_factory=list)

    def __post_init__(self) -> None:
        row_filters = ((each, ArrowRowFilter.of(each.type, each.rows, self.limits)) for each in self.tests)
        self._watched = [_Watched(*each, self.limits) for each in row_filters]

    @property
    def schema(self) -> pa.Schema:
        """The schema of every batch."""
        return pa.schema([(each.name, each.type) for each in self.columns])

    def read(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        """The rows of one file part, in its order; `OSError` if the file is not the one that was listed."""
        self.counts.files.add(part.path)
        with open_file(part, self.stores, self.limits) as file:
            try:
                groups = [RowGroup(file, at, part, self.columns, self.counts, self.limits) for at in part.row_groups]
                batches = (batch for at in range(len(groups)) for batch in self._read_next(groups[at:]))
                yield from _gathered(batches, self.limits)
                # Row groups without a matching row may be those of a replaced file, too.
                file.check()
            finally:
                self.counts.bytes += file.read_besides()

    def _read_next(self, groups: Sequence[RowGroup]) -> Iterator[pa.RecordBatch]:
        """The rows of the first row group; chunks of later ones that are read in any case may be prefetched."""
        self._watched.sort(key=lambda each: each.ratio)
        used = [each for each in self._watched if not each.is_useless]
        test = used[0].test if used else None
        # The first of several tests is known only after one has dropped rows.
        ahead = groups[: self.limits.row_groups_ahead if len(used) < 2 or used[0].asked else 1]
        groups[0].file.announce({each.at: each.ranges(each.leaves(test)) for each in ahead})
        return self._read_group(groups[0])

    def _read_group(self, group: RowGroup) -> Iterator[pa.RecordBatch]:
        self.counts.row_groups += 1
        self.counts.rows += group.rows
        passing: BoolArray | None = None
        for each in self._watched:
            if each.is_useless:
                continue
            found = _passing(each, group)
            each.asked, each.passed = each.asked + len(found), each.passed + int(np.count_nonzero(found))
            passing = found if passing is None else np.logical_and(passing, found, out=found)
            if not passing.any():
                return
        self.counts.row_groups_used += 1
        left = group.rows if passing is None else int(np.flatnonzero(passing)[-1]) + 1
        for begin, arrays in group.batches():
            group.file.check()
            batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
            end = begin + len(batch)
            if passing is not None:
                batch = batch.filter(pa.array(passing[begin:end]))
            self.counts.rows_passed += len(batch)
            if len(batch):
                yield batch
            if end >= left:
                return


@dataclass(slots=True)
class _Pace:
    """The number of rows to decode at a time."""

    rows: int
    limits: Limits

    @staticmethod
    def of(rows: int, size: int, limits: Limits) -> _Pace:
        """The number for the first batch, if `rows` rows take at least `size` bytes."""
        by_size = limits.batch_bytes * rows // max(1, size)
        return _Pace(max(1, min(limits.first_batch_rows, limits.batch_rows, by_size)), limits)

    def seen(self, rows: int, size: int) -> None:
        """Adjusts the number by the batch decoded last."""
        by_size = self.limits.batch_bytes * rows // max(1, size)
        self.rows = max(1, min(self.limits.batch_rows, self.limits.batch_growth * self.rows, by_size))


@dataclass(slots=True)
class RowGroup:
    """One row group, whose columns are read on demand; key columns too large to buffer are read a second time."""

    file: OpenFile
    at: int
    part: FilePart
    columns: Sequence[ReadColumn]
    counts: Counts
    limits: Limits
    _read: dict[int, pa.ChunkedArray] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self._metadata.num_rows)

    def leaves(self, test: KeyTest | None) -> list[int]:
        """The leaves of a test's column, or all leaves without a test."""
        leaves = self.part.leaves if test is None else [self.part.leaves[test.column]]
        return [leaf for leaf in leaves if leaf is not None]

    def ranges(self, leaves: Sequence[int]) -> list[Range]:
        """The byte ranges of chunks."""
        return [self._range(leaf) for leaf in leaves]

    def values(self, index: int) -> Iterator[pa.Array]:
        """A column of all rows in pieces, or the one value that all its rows have."""
        leaf, type_ = self.part.leaves[index], self.columns[index].type
        if leaf is None:
            yield self._constant(index, 1)
            return
        pace, kept, found = self._pace([leaf]), list[pa.Array](), 0
        left = self.limits.kept_key_bytes - sum(each.nbytes for each in self._read.values())
        for (decoded,), rows in self._decoded([leaf], pace):
            piece = as_type(decoded, type_)
            pace.seen(rows, piece.nbytes)
            found, left = found + rows, left - piece.nbytes
            if left >= 0:
                kept.append(piece)
            else:
                kept.clear()
            yield piece
        if found != self.rows:
            raise self._other_count(found)
        if left >= 0:
            self._read[index] = pa.chunked_array(kept, type_)

    def batches(self) -> Iterator[tuple[int, list[pa.Array]]]:
        """All columns of all rows, in batches of few bytes, each with the number of its first row."""
        leaves = enumerate(self.part.leaves)
        left = {index: leaf for index, leaf in leaves if leaf is not None and index not in self._read}
        # Columns are read in the order of the file.
        order = sorted(left, key=left.__getitem__)
        chosen = [left[index] for index in order]
        begin, pace = 0, self._pace(chosen)
        for found, rows in self._decoded(chosen, pace):
            decoded = {index: as_type(each, self.columns[index].type) for index, each in zip(order, found, strict=True)}
            arrays = [self._slice(index, decoded, begin, rows) for index in range(len(self.columns))]
            pace.seen(rows, sum(each.nbytes for each in arrays))
            yield begin, arrays
            begin += rows
        if begin != self.rows:
            raise self._other_count(begin)

    def _decoded(self, leaves: Sequence[int], pace: _Pace) -> Iterator[tuple[list[pa.Array], int]]:
        """Batches of some leaves with their numbers of rows, each as large as `pace` says at that moment."""
        if not leaves:
            begin = 0
            while begin < self.rows:
                rows = min(pace.rows, self.rows - begin)
                yield [], rows
                begin += rows
            return
        self.counts.bytes += self.file.fetch(self.ranges(leaves))
        reader = self.file.parquet.reader
        for each in reader.iter_batches(pace.rows, [self.at], column_indices=list(leaves), use_threads=False):
            yield each.columns, len(each)
            # The reader looks up the batch size before each batch.
            reader.set_batch_size(pace.rows)

    def _pace(self, leaves: Sequence[int]) -> _Pace:
        size = sum(int(self._metadata.column(leaf).total_uncompressed_size) for leaf in leaves)
        return _Pace.of(self.rows, size + sum(each.nbytes for each in self._read.values()), self.limits)

    def _slice(self, index: int, decoded: dict[int, pa.Array], begin: int, rows: int) -> pa.Array:
        if index in decoded:
            return decoded[index]
        if index in self._read:
            return self._read[index].slice(begin, rows).combine_chunks()
        return self._constant(index, rows)

    def _constant(self, index: int, rows: int) -> pa.Array:
        value, type_ = self.part.constants[index], self.columns[index].type
        return pa.nulls(rows, type_) if value is None else pa.repeat(value.cast(type_), rows)

    def _other_count(self, found: int) -> ValueError:
        return ValueError(f"Cannot read {self.part.path!r}: row group {self.at} has {self.rows} rows, a column {found}")

    @property
    def _metadata(self) -> pq.RowGroupMetaData:
        return self.file.parquet.metadata.row_group(self.at)

    def _range(self, leaf: int) -> Range:
        """The byte range of a chunk."""
        chunk = self._metadata.column(leaf)
        begin, first = int(chunk.data_page_offset), chunk.dictionary_page_offset
        # Some writers say 0 where there is none.
        return (int(first) if first and first < begin else begin), int(chunk.total_compressed_size)


def _passing(watched: _Watched, group: RowGroup) -> BoolArray:
    pieces = [watched.row_filter.matching(each) for each in _joined(group.values(watched.test.column), group.limits)]
    found = np.concatenate([np.zeros(0, bool), *pieces])
    # One value may stand for all rows.
    return found if len(found) == group.rows else np.full(group.rows, found[0])


def _joined(pieces: Iterator[pa.Array], limits: Limits) -> Iterator[pa.Array]:
    """The pieces joined up to a limit of bytes, since a test builds its table of keys once for each piece."""
    waiting, size = list[pa.Array](), 0
    for piece in pieces:
        waiting.append(piece)
        size += piece.nbytes
        if size >= limits.batch_bytes:
            yield pa.concat_arrays(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.concat_arrays(waiting)


def _gathered(batches: Iterator[pa.RecordBatch], limits: Limits) -> Iterator[pa.RecordBatch]:
    """The rows in fewer batches, since sending a batch costs as much as thousands of rows.

    The first batch is sent at once, since a query with a limit may need no more rows.
    """
    waiting, size, enough = list[pa.RecordBatch](), 0, 1
    for batch in batches:
        if waiting and size + batch.nbytes > limits.batch_bytes:
            yield pa.concat_batches(waiting)
            waiting, size = [], 0
        waiting.append(batch)
        size += batch.nbytes
        if sum(map(len, waiting)) >= enough:
            yield pa.concat_batches(waiting)
            waiting, size = [], 0
            enough = min(limits.batch_rows, max(limits.first_batch_rows, limits.batch_growth * enough))
    if waiting:
        yield pa.concat_batches(waiting)


def as_type(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """The values in another type with the same bytes, or in a wider type."""
    if array.type == type_:
        return array
    if pa.types.is_dictionary(array.type):
        return as_type(array.dictionary_decode(), type_)
    if pa.types.is_string(type_) and pa.types.is_binary(array.type):
        # Spark accepts any bytes as text.
        return array.view(type_)
    return array.cast(type_)
