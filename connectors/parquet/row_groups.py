"""Row groups of Parquet files with statistics, from footers that are read in parallel and cached by the caller."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from connectors.parquet.bounds import ChunkBounds, chunk_bounds, decoder
from connectors.parquet.footer import Footer, Schemas, chunk_metadata, parse_footer
from connectors.parquet.pushdown import NO_LIMITS, ReaderLimits, fewer_digits, takes_predicate
from connectors.parquet.schema import FooterColumn, leaves_under, locate
from connectors.parquet.writers import Fault
from connectors.spark.files import FOOTER_THREADS, Storage
from pruning.reasons import Reason, ReasonCode
from pruning.scan.statistics import UNKNOWN, ColumnStatistics, ContainerKind, Containers
from pruning.values import encoding as code
from pruning.values.byte_strings import ByteStrings
from pruning.values.encoding import Codes
from pruning.values.types import Physical, ValueType

__all__ = ["FileRef", "FooterCache", "FooterColumn", "FooterResult", "load_footers", "read_row_groups", "unread"]

_PROBLEMS_NAMED = 5
_NOTHING = ChunkBounds()
_INVERTED = "the least value of a row group lies above its greatest"


@dataclass(frozen=True, slots=True)
class FileRef:
    """One listed file.

    `path` is a URI as Hadoop's `Path.toUri` writes it, or an absolute local path taken literally; `size` is in
    bytes, `modified` in milliseconds since 1970.
    """

    path: str
    size: int
    modified: int


class FooterCache:
    """A cache of parsed footers up to `most_bytes`, the least recently used dropped first; thread-safe."""

    def __init__(self, most_bytes: int = 256 << 20) -> None:
        self._most = most_bytes
        self.schemas = Schemas()
        self._footers: OrderedDict[FileRef, Footer] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._footers)

    @property
    def nbytes(self) -> int:
        """The approximate bytes of the cached footers."""
        return self._bytes

    def get(self, file: FileRef) -> Footer | None:
        """The footer of exactly this file, size and modification time."""
        with self._lock:
            if file in self._footers:
                self._footers.move_to_end(file)
            return self._footers.get(file)

    def put(self, file: FileRef, footer: Footer) -> None:
        """Caches `footer`, and drops older ones if needed."""
        with self._lock:
            if file in self._footers or footer.nbytes > self._most:
                return
            self._footers[file] = footer
            self._bytes += footer.nbytes
            while self._bytes > self._most:
                _, dropped = self._footers.popitem(last=False)
                self._bytes -= dropped.nbytes


@dataclass(frozen=True, slots=True)
class FooterResult:
    """Row groups in the order of their files, reasons of unread footers, and the limits of the files' reader."""

    containers: Containers
    problems: tuple[Reason, ...]
    limits: ReaderLimits = NO_LIMITS


def read_row_groups(  # noqa: PLR0913 - what to read, and what the caller holds
    files: Sequence[FileRef],
    columns: Sequence[FooterColumn],
    projected: Sequence[str] | None,
    storage: Storage,
    cache: FooterCache,
    *,
    case_sensitive: bool = False,
) -> FooterResult:
    """The row groups of `files`, with indexes of `files` as parents; no content of storage raises an exception.

    Sizes are the compressed bytes of the column chunks of the top-level columns `projected`, of all if None. A
    file whose footer cannot be read is one container of unknown rows, of the file's size. Names compare as
    Spark compares them under `case_sensitive`.
    """
    gathered = _Gathered([_Series(column, column.type) for column in columns if column.type is not None])
    problems: list[Reason] = []
    for index, (file, footer) in enumerate(zip(files, load_footers(files, storage, cache), strict=True)):
        if isinstance(footer, Exception):
            gathered.add_unknown(index, file)
            problems.append(unread(file, footer))
        else:
            gathered.add(index, file, footer, projected, case_sensitive=case_sensitive)
    inverted = [each.column.name for each in gathered.series if any(bounds.is_inverted for bounds in each.bounds)]
    problems += [Reason(ReasonCode.STATISTICS_FAILED, name, _INVERTED) for name in inverted]
    problems += [
        Reason(ReasonCode.WRONG_METADATA, each.column.name, detail)
        for each in gathered.series
        for detail in each.faults
    ]
    misled = frozenset([*inverted, *(each.column.name for each in gathered.series if each.is_misled)])
    digits = {each.column.name: each.digits for each in gathered.series if each.digits is not None}
    return FooterResult(gathered.containers(), _shortened(problems), ReaderLimits(misled, digits))


def load_footers(files: Sequence[FileRef], storage: Storage, cache: FooterCache) -> Iterator[Footer | Exception]:
    """The footer of each file, in order, or the error; footers that are not cached are read by several threads."""
    cached = [cache.get(file) for file in files]
    if all(each is not None for each in cached):
        # Starting threads would cost more than all the rest.
        yield from (each for each in cached if each is not None)
        return
    with ThreadPoolExecutor(FOOTER_THREADS, thread_name_prefix="footers") as pool:
        yield from pool.map(lambda file: _load(file, storage, cache), files)


def _load(file: FileRef, storage: Storage, cache: FooterCache) -> Footer | Exception:
    if cached := cache.get(file):
        return cached
    try:
        footer = parse_footer(storage.read_footer(file.path, file.size), cache.schemas)
    except (OSError, ValueError, MemoryError) as error:
        return error
    cache.put(file, footer)
    return footer


@dataclass(slots=True)
class _Series:
    """Statistics of one column, one entry per row group added so far; `digits` as in `ReaderLimits`.

    `faults` has the writers of its files that are known to get a part of the column's metadata wrong, in words. The
    reader of such a file would skip matching rows by a predicate if `is_misled`.
    """

    column: FooterColumn
    type: ValueType
    bounds: list[ChunkBounds] = field(default_factory=list)
    distinct: list[int] = field(default_factory=list)
    file_only: list[bool] = field(default_factory=list)
    has_bloom_filter: list[bool] = field(default_factory=list)
    digits: int | None = None
    faults: dict[str, None] = field(default_factory=dict)
    is_misled: bool = False
    missing: ReasonCode = ReasonCode.NO_STATISTICS

    def add_file(self, footer: Footer, *, case_sensitive: bool) -> None:
        """The row groups of one file."""
        place = locate(footer.schema, self.column, case_sensitive=case_sensitive)
        if place.leaf is None or place.type is None:
            for rows in footer.rows.tolist():
                if place.is_missing:
                    self.add(ChunkBounds(nulls=rows), has_bloom_filter=False)
                else:
                    self.add(_NOTHING)
            return
        if place.type.physical == "INT96":
            self.missing = ReasonCode.INT96
        fault = footer.writer.fault(place.type)
        if fault is not None:
            self.faults[f"{fault.value}, {footer.writer.text}"] = None
            self.is_misled |= takes_predicate(place.type, self.type)
        is_ordered = footer.is_ordered(place.leaf, place.type)
        believed = fault is not Fault.BOUNDS
        decodes = (
            decoder(place.type, self.type, is_ordered=is_ordered, is_gregorian=footer.is_gregorian)
            if believed
            else None
        )
        is_file_only = not takes_predicate(place.type, self.type)
        digits = [each for each in (self.digits, fewer_digits(place.type, self.type)) if each is not None]
        self.digits = min(digits, default=None)
        for group, rows in enumerate(footer.rows.tolist()):
            chunk = chunk_metadata(footer, group, place.leaf)
            found = chunk.statistics
            known = found and chunk_bounds(found, rows, decodes, has_null_parents=place.has_null_parents)
            self.add(
                known or _NOTHING, chunk.distinct, is_file_only=is_file_only, has_bloom_filter=chunk.has_bloom_filter
            )

    def add(
        self,
        bounds: ChunkBounds,
        distinct: int = UNKNOWN,
        *,
        is_file_only: bool = False,
        has_bloom_filter: bool = True,
    ) -> None:
        """One row group, which its reader cannot skip by the column if `is_file_only`."""
        self.bounds.append(bounds)
        self.distinct.append(distinct)
        self.file_only.append(is_file_only)
        self.has_bloom_filter.append(has_bloom_filter)

    def statistics(self) -> ColumnStatistics:
        """All entries as arrays."""
        lows, highs = [each.low for each in self.bounds], [each.high for each in self.bounds]
        return ColumnStatistics(
            self.type,
            _codes(self.type, lows),
            _codes(self.type, highs),
            has_low=np.array([low is not None for low in lows], bool),
            has_high=np.array([high is not None for high in highs], bool),
            null_count=np.array([each.nulls for each in self.bounds], np.int64),
            may_have_nan=np.full(len(self.bounds), self.type.is_float),
            file_only=np.array(self.file_only, bool),
            distinct=np.array(self.distinct, np.int64),
            has_bloom_filter=np.array(self.has_bloom_filter, bool),
            missing=self.missing,
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
            each.add(_NOTHING)

    def add(
        self, parent: int, file: FileRef, footer: Footer, projected: Sequence[str] | None, *, case_sensitive: bool
    ) -> None:
        """The row groups of one file."""
        chunks = leaves_under(footer.schema, projected, case_sensitive=case_sensitive)
        sizes = footer.sizes[:, chunks].sum(axis=1).tolist()
        for index, rows in enumerate(footer.rows.tolist()):
            self._add(parent, f"{file.path}#{index}", rows, sizes[index])
        for each in self.series:
            each.add_file(footer, case_sensitive=case_sensitive)

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


def _codes(type_: ValueType, values: Sequence[int | bytes | None]) -> Codes:
    if type_.physical is Physical.INT64:
        return np.array([0 if value is None else value for value in values], np.int64)
    return (
        ByteStrings.of(value if isinstance(value, bytes) else b"" for value in values) if values else code.empty(type_)
    )


def _shortened(problems: Sequence[Reason]) -> tuple[Reason, ...]:
    if len(problems) <= _PROBLEMS_NAMED:
        return tuple(problems)
    rest = len(problems) - _PROBLEMS_NAMED
    return (*problems[:_PROBLEMS_NAMED], Reason(ReasonCode.STATISTICS_FAILED, f"{rest} more files"))


def unread(file: FileRef, error: Exception) -> Reason:
    """The reason that the footer of a file cannot be read."""
    return Reason(ReasonCode.STATISTICS_FAILED, file.path, " ".join(str(error).split())[:200])
