"""Row groups of Parquet files with their statistics, from footers read in parallel and kept by the caller."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from connectors.footer_columns import Leaves, Place, locate
from connectors.footer_statistics import Bounds, null_count
from connectors.storage import TRAILER, Storage
from pruning import codes as code
from pruning.byte_strings import ByteStrings
from pruning.codes import Codes
from pruning.reasons import Reason, ReasonCode
from pruning.statistics import UNKNOWN, ColumnStatistics, ContainerKind, Containers
from pruning.value_type import Physical, ValueType

_THREADS = 16
_MOST_PROBLEMS = 5
# A parsed footer takes several times its bytes: one object per column chunk, with strings and statistics.
_PARSED_FACTOR = 8


@dataclass(frozen=True, slots=True)
class FileRef:
    """One file as it was listed.

    `path` is a URI as Hadoop's `Path.toUri` writes it, or an absolute local path taken literally; `size` is in
    bytes, `modified` in milliseconds since 1970.
    """

    path: str
    size: int
    modified: int


@dataclass(frozen=True, slots=True)
class FooterColumn:
    """A leaf column as files name it: physical names from the top, and the type that Spark reads it as.

    - `name`: what the statistics are called
    - `missing_is_null`: False where a file without the column does not read as NULL (a column default)
    - `field_ids`: the ids along the path where Spark finds columns by id; a leaf without them is then unknown
    """

    name: str
    path: tuple[str, ...]
    type: ValueType
    missing_is_null: bool = True
    field_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Footer:
    """A parsed footer, the leaves that its schema names, and about how many bytes it keeps in memory."""

    metadata: pq.FileMetaData
    leaves: Leaves
    weight: int


class FooterCache:
    """Parsed footers up to `most_bytes`, the least recently used dropped first; for any number of threads."""

    def __init__(self, most_bytes: int = 256 << 20) -> None:
        self._most = most_bytes
        self._footers: OrderedDict[FileRef, Footer] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._footers)

    @property
    def nbytes(self) -> int:
        """About how many bytes the cached footers take."""
        return self._bytes

    def get(self, file: FileRef) -> Footer | None:
        """The footer of exactly this file, size and modification time."""
        with self._lock:
            if file in self._footers:
                self._footers.move_to_end(file)
            return self._footers.get(file)

    def put(self, file: FileRef, footer: Footer) -> None:
        """Keep `footer`, at the cost of older ones."""
        with self._lock:
            if file in self._footers or footer.weight > self._most:
                return
            self._footers[file] = footer
            self._bytes += footer.weight
            while self._bytes > self._most:
                _, dropped = self._footers.popitem(last=False)
                self._bytes -= dropped.weight


@dataclass(frozen=True, slots=True)
class FooterResult:
    """Row groups in the order of their files, and what could not be read."""

    containers: Containers
    problems: tuple[Reason, ...]


def read_row_groups(  # noqa: PLR0913 - what to read, and the three things the caller holds
    files: Sequence[FileRef],
    columns: Sequence[FooterColumn],
    projected: Sequence[str] | None,
    storage: Storage,
    cache: FooterCache,
    *,
    case_sensitive: bool = False,
) -> FooterResult:
    """The row groups of `files`, their parents being indexes into it; never an exception for what storage holds.

    Sizes are the compressed bytes of the column chunks of the top-level columns `projected`, of all if None. A
    file whose footer cannot be read is one container of unknown rows, of the file's size. Names compare as
    Spark compares them under `case_sensitive`.
    """
    gathered = _Gathered([_Series(column) for column in columns])
    problems: list[Reason] = []
    for index, (file, footer) in enumerate(zip(files, _footers(files, storage, cache), strict=True)):
        if isinstance(footer, Exception):
            gathered.add_unknown(index, file)
            problems.append(Reason(ReasonCode.STATISTICS_FAILED, file.path, _one_line(footer)))
        else:
            gathered.add(index, file, footer, projected, case_sensitive=case_sensitive)
    return FooterResult(gathered.containers(), _shortened(problems))


def parse_footer(footer: bytes) -> Footer:
    """A footer of its bytes with their trailer; `ValueError` or `OSError` where they are none."""
    metadata = pq.read_metadata(pa.BufferReader(footer))
    return Footer(metadata, Leaves.of(metadata, footer[:-TRAILER]), len(footer) * _PARSED_FACTOR)


def _footers(files: Sequence[FileRef], storage: Storage, cache: FooterCache) -> Iterator[Footer | Exception]:
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="footers") as pool:
        yield from pool.map(lambda file: _load(file, storage, cache), files)


def _load(file: FileRef, storage: Storage, cache: FooterCache) -> Footer | Exception:
    if cached := cache.get(file):
        return cached
    try:
        footer = parse_footer(storage.read_footer(file.path, file.size))
    except (OSError, ValueError, MemoryError, pa.ArrowException) as error:
        return error
    cache.put(file, footer)
    return footer


@dataclass(slots=True)
class _Series:
    """Statistics of one column, one entry per row group added so far."""

    column: FooterColumn
    bounds: list[Bounds] = field(default_factory=list)
    nulls: list[int] = field(default_factory=list)

    def add(self, bounds: Bounds, nulls: int) -> None:
        self.bounds.append(bounds)
        self.nulls.append(nulls)

    def add_chunk(self, place: Place, group: Any, rows: int) -> None:
        """The statistics of this column in one row group of `rows` rows."""
        if place.is_missing:
            self.add(None, rows)
        elif place.index is None:
            self.add(None, UNKNOWN)
        else:
            self.add(*_chunk_statistics(place, group.column(place.index), rows))

    def statistics(self) -> ColumnStatistics:
        """All entries as arrays."""
        type_ = self.column.type
        has = np.array([each is not None for each in self.bounds], bool)
        return ColumnStatistics(
            type_,
            _codes(type_, [each and each[0] for each in self.bounds]),
            _codes(type_, [each and each[1] for each in self.bounds]),
            has_low=has,
            has_high=has,
            null_count=np.array(self.nulls, np.int64),
            may_have_nan=np.full(len(has), type_.is_float),
        )


@dataclass(slots=True)
class _Gathered:
    """Row groups of the files added so far."""

    series: list[_Series]
    names: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)

    def add_unknown(self, parent: int, file: FileRef) -> None:
        """A file of which only the size is known."""
        self._add(parent, file.path, UNKNOWN, file.size)
        for each in self.series:
            each.add(None, UNKNOWN)

    def add(
        self, parent: int, file: FileRef, footer: Footer, projected: Sequence[str] | None, *, case_sensitive: bool
    ) -> None:
        """The row groups of one file."""
        chunks = footer.leaves.under(projected, case_sensitive=case_sensitive)
        places = [locate(footer.leaves, each.column, case_sensitive=case_sensitive) for each in self.series]
        for index in range(footer.metadata.num_row_groups):
            group = footer.metadata.row_group(index)
            size = sum(group.column(chunk).total_compressed_size for chunk in chunks)
            self._add(parent, f"{file.path}#{index}", group.num_rows, size)
            for each, place in zip(self.series, places, strict=True):
                each.add_chunk(place, group, group.num_rows)

    def _add(self, parent: int, name: str, rows: int, size: int) -> None:
        self.parents.append(parent)
        self.names.append(name)
        self.rows.append(rows)
        self.sizes.append(size)

    def containers(self) -> Containers:
        """Everything added."""
        return Containers(
            ContainerKind.ROW_GROUP,
            tuple(self.names),
            np.array(self.rows, np.int64),
            np.array(self.sizes, np.int64),
            {each.column.name: each.statistics() for each in self.series},
            np.array(self.parents, np.int64),
        )


def _chunk_statistics(place: Place, chunk: Any, rows: int) -> tuple[Bounds, int]:
    try:
        found = chunk.statistics
        if found is None or chunk.num_values != rows:
            return None, UNKNOWN
        has_bounds = bool(found.has_min_max)
        nulls = null_count(
            found.null_count if found.has_null_count else None,
            rows,
            has_bounds=has_bounds,
            is_nested=place.is_nested,
        )
        if not has_bounds or place.decoder is None:
            return None, nulls
        return place.decoder.bounds(found.min_raw, found.max_raw), nulls
    except (OSError, ValueError, NotImplementedError, pa.ArrowException):
        # Bounds of a length that their type cannot have: the chunk is unknown, the file is not.
        return None, UNKNOWN


def _codes(type_: ValueType, values: Sequence[int | bytes | None]) -> Codes:
    if type_.physical is Physical.INT64:
        return np.array([0 if value is None else value for value in values], np.int64)
    return (
        ByteStrings.of(value if isinstance(value, bytes) else b"" for value in values) if values else code.empty(type_)
    )


def _shortened(problems: Sequence[Reason]) -> tuple[Reason, ...]:
    if len(problems) <= _MOST_PROBLEMS:
        return tuple(problems)
    rest = len(problems) - _MOST_PROBLEMS
    return (*problems[:_MOST_PROBLEMS], Reason(ReasonCode.STATISTICS_FAILED, f"{rest} more files"))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
