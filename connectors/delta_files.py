"""The files of one version of a Delta table, and the statistics fetched of them so far."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.delta_bounds import ANY_FLAW, Flaws, StoredBounds
from connectors.delta_log import Snapshot
from connectors.delta_statistics import LogColumn, column_statistics, deleted_counts, flaws_of, listing, row_counts
from connectors.footers import FileRef
from pruning.byte_strings import IntArray
from pruning.intervals import BoolArray
from pruning.statistics import ColumnStatistics

logger = logging.getLogger("scanprune")

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


@dataclass(frozen=True, slots=True, eq=False)
class Uris(Sequence[str]):
    """URIs of files, from their paths in the log, which are relative to `root` or absolute."""

    root: str
    paths: pa.ChunkedArray

    def __len__(self) -> int:
        return len(self.paths)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return tuple(self[each] for each in range(len(self))[index])
        path = str(self.paths[index].as_py())
        return path if _ABSOLUTE.match(path) else f"{self.root.rstrip('/')}/{path}"


@dataclass(frozen=True, slots=True, eq=False)
class DeltaFiles:
    """The `n` files of a version in the order of their paths.

    `rows` are those in the file, also where deletion vectors mark them as gone, as `has_vector` says: at most `deleted`
    of them. `modified` are milliseconds. `broken` counts the files whose statistics cannot be parsed whole.
    """

    uris: Uris
    rows: IntArray
    sizes: IntArray
    modified: IntArray
    has_vector: BoolArray
    deleted: IntArray
    broken: int

    def __len__(self) -> int:
        return len(self.rows)

    def reference(self, index: int) -> FileRef:
        """The file at `index` as its footer is read."""
        return FileRef(self.uris[index], int(self.sizes[index]), int(self.modified[index]))


# How bounds are to be read depends on the session, too.
_Key = tuple[tuple[str, ...], StoredBounds]


def _key(column: LogColumn) -> _Key:
    return column.path, column.stored


class FileCatalog:
    """What was fetched of one version; for any number of threads, each column fetched once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: DeltaFiles | None = None
        self._columns: dict[_Key, ColumnStatistics] = {}
        self._flaws: dict[_Key, Flaws] = {}
        self._expected: dict[_Key, LogColumn] = {}

    @property
    def is_fetched(self) -> bool:
        """Whether the files are known, and with them the statistics of some columns."""
        return self._files is not None

    def expect(self, columns: Sequence[LogColumn]) -> None:
        """Has the next job fetch these columns with what it is for: they may be asked for, too."""
        with self._lock:
            self._expected |= {_key(each): each for each in columns if _key(each) not in self._columns}

    def files(self, snapshot: Snapshot, columns: Sequence[LogColumn]) -> tuple[DeltaFiles, list[ColumnStatistics]]:
        """The files, and the statistics of `columns`; one job of Spark for all that is not there yet."""
        with self._lock:
            files = self._files
            missing = [column for column in columns if _key(column) not in self._columns]
            if files is None or missing:
                files = self._fetched(snapshot, missing)
            return files, self.known(columns)

    def known(self, columns: Sequence[LogColumn]) -> list[ColumnStatistics]:
        """The statistics of columns that were fetched."""
        return [self._columns[_key(column)] for column in columns]

    def flaws(self, column: LogColumn) -> Flaws:
        """What is wrong with the bounds of a column; all that can be where none were fetched."""
        with self._lock:
            return self._flaws.get(_key(column), ANY_FLAW)

    def _fetched(self, snapshot: Snapshot, columns: Sequence[LogColumn]) -> DeltaFiles:
        asked = {_key(each) for each in columns}
        more = [each for key, each in self._expected.items() if key not in asked and key not in self._columns]
        self._expected.clear()
        if more:
            every = [*columns, *more]
            try:
                table = listing(snapshot.actions(), every).toArrow()
                # Nobody has asked for these yet, and what cannot be parsed of one may be missing of others.
                if not pc.any(table["broken"]).as_py():
                    return self._kept(snapshot, table, every)
            except Exception:
                # Whoever asks for one of them is told what is wrong with it.
                logger.debug("Fetching statistics of columns that may be asked for failed", exc_info=True)
        return self._kept(snapshot, listing(snapshot.actions(), columns).toArrow(), columns)

    def _kept(self, snapshot: Snapshot, table: pa.Table, columns: Sequence[LogColumn]) -> DeltaFiles:
        files = self.keep(snapshot.root, snapshot.version, table, columns)
        # Of a million files Arrow would keep 200 MB that nothing lies in.
        pa.default_memory_pool().release_unused()
        return files

    def keep(self, root: str, version: int, table: pa.Table, columns: Sequence[LogColumn]) -> DeltaFiles:
        """The files of a `listing` of these columns, whose statistics are known from then on."""
        # A state that is reconstructed anew need not come in the same order.
        table = table.sort_by([("path", "ascending"), ("vector", "ascending")]).combine_chunks()
        files = self._files or _files(root, table)
        if not table["path"].equals(files.uris.paths):
            msg = f"Cannot join statistics of {root!r}: version {version} lists other files than before"
            raise ValueError(msg)
        found = {_key(column): column_statistics(table, index, column) for index, column in enumerate(columns)}
        flaws = {_key(column): flaws_of(table, index, column) for index, column in enumerate(columns)}
        self._files = files
        self._columns |= found
        self._flaws |= flaws
        return files


def _files(root: str, table: pa.Table) -> DeltaFiles:
    numbers = {name: np.asarray(table[name].to_numpy(), np.int64) for name in ("size", "modified")}
    broken = int(np.count_nonzero(table["broken"].to_numpy(zero_copy_only=False)))
    return DeltaFiles(
        Uris(root, table["path"]),
        row_counts(table),
        numbers["size"],
        numbers["modified"],
        np.asarray(table["vector"].is_valid().to_numpy(), bool),
        deleted_counts(table),
        broken,
    )
