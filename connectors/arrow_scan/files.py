"""Parquet files as Spark's Python workers open them: local files, and objects of an S3 store.

The module imports only Arrow, limits and the names of buckets. If a file is not the one that was listed, an error is
raised: row groups are named by number, and another file has other rows under the same numbers.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.arrow_scan.s3 import S3Access, bucket_of, object_of
from pruning.limits import LIMITS, Limits

# First byte and number of bytes.
Range: TypeAlias = "tuple[int, int]"

_NANOSECONDS_PER_MILLISECOND = 1_000_000
_MILLISECONDS_PER_SECOND = 1_000


class OtherFileError(OSError):
    """The file at a path is not the one that was listed, or is missing."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """Row groups of one file; `path` is a local path, or a URI of an S3 store.

    - `leaves`: for each column of the result the leaf of the file that holds it, None if there is none
    - `constants`: for each column without a leaf the value of all its rows
    - `size`, `modified`: listed bytes and milliseconds since 1970; None if they are not to be checked
    - `footer`: the file's footer, which is then not read again; None to read it
    """

    path: str
    row_groups: tuple[int, ...]
    leaves: tuple[int | None, ...]
    constants: tuple[pa.Scalar | None, ...]
    size: int | None = None
    modified: int | None = None
    footer: bytes | None = None


class OpenFile(Protocol):
    """A Parquet file of which chunks are announced before they are decoded."""

    parquet: pq.ParquetFile

    def announce(self, coming: Mapping[int, Sequence[Range]]) -> None:
        """Announces ranges that will be fetched together, by row group: a store may be asked for them beforehand."""

    def fetch(self, ranges: Sequence[Range]) -> int:
        """Makes chunks ready to be decoded until the next call, and returns the bytes that were read."""

    def check(self) -> None:
        """Raises an `OSError` unless all bytes read so far are of the file that was listed."""

    def read_besides(self) -> int:
        """The bytes read without `fetch` since the last call, such as footers; pending requests are ended first."""

    def close(self) -> None:
        """Releases all resources."""


@contextmanager
def open_file(part: FilePart, stores: Mapping[str, S3Access], limits: Limits = LIMITS) -> Iterator[OpenFile]:
    """The file that was listed; `OtherFileError` if it was replaced or is missing.

    `stores` are the buckets in which files may lie; `OSError` if a store fails.
    """
    metadata = None if part.footer is None else pq.read_metadata(pa.BufferReader(part.footer))
    bucket = bucket_of(part.path)
    try:
        found: OpenFile
        if bucket is None:
            found = _LocalFile(part, metadata)
        else:
            waits = limits.store_attempts, limits.store_connect_seconds, limits.store_answer_seconds
            found = _StoredObject(part, metadata, _client(stores[bucket], *waits), limits)
    except FileNotFoundError as error:
        raise _gone(part.path) from error
    try:
        yield found
    finally:
        found.close()


def _gone(path: str) -> OtherFileError:
    return OtherFileError(f"Cannot read {path!r}: it does not exist; open the table and prune again")


def _replaced(path: str) -> OtherFileError:
    return OtherFileError(
        f"Cannot read {path!r}: it was replaced since the query was pruned; open the table and prune again"
    )


class _LocalFile:
    """A local file: while it is open, its content does not change."""

    def __init__(self, part: FilePart, metadata: pq.FileMetaData | None) -> None:
        self.parquet = pq.ParquetFile(part.path, metadata=metadata, pre_buffer=False)
        found = Path(part.path).stat()
        is_same = part.size in {None, found.st_size}
        is_same &= part.modified in {None, found.st_mtime_ns // _NANOSECONDS_PER_MILLISECOND}
        if not is_same:
            self.parquet.close(force=True)
            raise _replaced(part.path)
        self._besides = 0 if metadata is not None else int(self.parquet.metadata.serialized_size)

    def announce(self, coming: Mapping[int, Sequence[Range]]) -> None:
        """Does nothing: the operating system reads ahead."""

    def fetch(self, ranges: Sequence[Range]) -> int:
        """The size of the ranges, which Arrow reads itself."""
        return sum(size for _, size in ranges)

    def check(self) -> None:
        """Does nothing: the open file cannot change."""

    def read_besides(self) -> int:
        """The bytes of the footer."""
        found, self._besides = self._besides, 0
        return found

    def close(self) -> None:
        """Closes the file."""
        self.parquet.close(force=True)


class _StoredObject:
    """An object of an S3 store: announced chunks are read by a few requests at a time, each for exactly their bytes.

    Memory: the chunks fetched last, and announced chunks up to `store_request_bytes`, or a single one. Objects are
    replaced as a whole, so an object with the same ETag as when it was opened has not changed in between.
    """

    def __init__(self, part: FilePart, metadata: pq.FileMetaData | None, store: _Client, limits: Limits) -> None:
        self._uri, self._store, self._limits = part.path, store, limits
        self._object = self._opened()
        self._identity = self._told_identity()
        self._may_be_replaced, self._is_checked = part.modified is not None, True
        is_same = part.size in {None, self._object.size()}
        if not (is_same and (part.modified is None or self._has_time(part.modified))):
            raise _replaced(self._uri)
        # Fetches need not wait for announced ranges.
        self._pool = ThreadPoolExecutor(2 * limits.store_requests, thread_name_prefix="chunks")
        self._ahead: dict[Range, tuple[int, Future[bytes]]] = {}
        self._ranges = _Ranges(self._object.size(), self._read_besides)
        self.parquet = pq.ParquetFile(pa.PythonFile(self._ranges, "r"), metadata=metadata, pre_buffer=False)

    def announce(self, coming: Mapping[int, Sequence[Range]]) -> None:
        """Requests ranges in order, up to the limits of requests and bytes; cancels ranges of other row groups."""
        self._give_up([each for each, (number, _) in self._ahead.items() if number not in coming])
        most, most_bytes = self._limits.store_requests, self._limits.store_request_bytes
        for number, ranges in coming.items():
            for each in _joined(ranges, most_bytes):
                size = each[1] + sum(size for _, size in self._ahead)
                if self._ahead and (len(self._ahead) >= most or size > most_bytes):
                    return
                if each not in self._ahead:
                    self._ahead[each] = number, self._pool.submit(self._read, *each)

    def fetch(self, ranges: Sequence[Range]) -> int:
        """Reads ranges, adjacent ones by one request of up to some megabytes."""
        wanted = _joined(ranges, self._limits.store_request_bytes)
        self._ranges.held.clear()
        under_way = [
            self._ahead.pop(each)[1] if each in self._ahead else self._pool.submit(self._read, *each) for each in wanted
        ]
        found = [each.result() for each in under_way]
        # Reset after the bytes have arrived: a check covers only bytes that arrived before it.
        self._is_checked = False
        self._ranges.held.update(zip((begin for begin, _ in wanted), map(pa.py_buffer, found), strict=True))
        return sum(size for _, size in wanted)

    def check(self) -> None:
        """Checks the object by one request, except for files that are never replaced."""
        if self._is_checked or not self._may_be_replaced:
            return
        self._object = self._opened()
        if self._told_identity() != self._identity:
            raise _replaced(self._uri)
        self._is_checked = True

    def read_besides(self) -> int:
        """The bytes of footers and of announced ranges that were not fetched."""
        self._give_up(list(self._ahead))
        found, self._ranges.besides = self._ranges.besides, 0
        return found

    def close(self) -> None:
        """Cancels pending requests and closes the file."""
        self._pool.shutdown(cancel_futures=True)
        self.parquet.close(force=True)

    def _give_up(self, ranges: Collection[Range]) -> None:
        for each in ranges:
            _, future = self._ahead.pop(each)
            self._ranges.besides += 0 if future.cancel() else each[1]

    def _opened(self) -> pa.NativeFile:
        try:
            return self._store.files.open_input_file(object_of(self._uri))
        except FileNotFoundError:
            raise _gone(self._uri) from None
        except OSError as error:
            raise self._told(error) from None

    def _told_identity(self) -> tuple[Any, ...]:
        return self._entry("ETag"), self._entry("Last-Modified"), self._object.size()

    def _entry(self, name: str) -> bytes | None:
        found: bytes | None = self._object.metadata().get(name)
        return found

    def _has_time(self, modified: int) -> bool:
        """True if the object has the listed time in whole seconds, since only listings give fractions of seconds."""
        found = self._entry("Last-Modified")
        return found is None or _seconds(found.decode()) == modified // _MILLISECONDS_PER_SECOND

    def _read(self, begin: int, size: int) -> bytes:
        try:
            found: bytes = self._object.read_at(size, begin)
        except FileNotFoundError:
            raise _gone(self._uri) from None
        except OSError as error:
            raise self._told(error) from None
        if len(found) != size:
            raise _replaced(self._uri)
        return found

    def _read_besides(self, begin: int, size: int) -> bytes:
        found = self._read(begin, size)
        self._is_checked = False
        return found

    def _told(self, error: OSError) -> OSError:
        return OSError(f"Cannot read {self._uri!r}: {self._store.access.without_secrets(str(error))}")


class _Ranges(io.RawIOBase):
    """A file for Arrow that reads buffered ranges from memory, and any other range by a request."""

    def __init__(self, size: int, read: Any) -> None:
        super().__init__()
        self.held: dict[int, pa.Buffer] = {}
        self.besides = 0
        self._size, self._read, self._at = size, read, 0

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def close(self) -> None:
        """Releases the buffered ranges."""
        self.held.clear()
        super().close()

    def tell(self) -> int:
        """The offset of the next read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Sets the offset of the next read, and returns it."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1) -> Any:
        """The next bytes; buffered ones are returned without a copy."""
        left = max(0, self._size - self._at)
        size = left if size < 0 else min(size, left)
        begin, self._at = self._at, self._at + size
        for start, buffer in self.held.items():
            if start <= begin and begin + size <= start + buffer.size:
                return buffer.slice(begin - start, size)
        self.besides += size
        return self._read(begin, size) if size else b""


def _joined(ranges: Sequence[Range], most_bytes: int) -> list[Range]:
    """The ranges with adjacent ones joined up to `most_bytes`; none is split.

    >>> _joined([(30, 5), (0, 10), (10, 5)], 15)
    [(0, 15), (30, 5)]
    """
    found: list[Range] = []
    for begin, size in sorted(each for each in ranges if each[1]):
        if found and sum(found[-1]) == begin and found[-1][1] + size <= most_bytes:
            found[-1] = (found[-1][0], found[-1][1] + size)
        else:
            found.append((begin, size))
    return found


def _seconds(time: str) -> int:
    return int(datetime.strptime(time, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp())


@dataclass(frozen=True, slots=True)
class _Client:
    """The client of a store."""

    access: S3Access
    files: Any


@lru_cache(8)
def _client(store: S3Access, attempts: int, connect_seconds: float, request_seconds: float) -> _Client:
    """A client that all tasks of a worker share, since each client opens new connections."""
    # Imported only if a file lies in a store, since not every build of Arrow has S3.
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem  # noqa: PLC0415

    files = S3FileSystem(
        access_key=store.access_key,
        secret_key=store.secret_key,
        session_token=store.session_token,
        anonymous=store.access_key is None,
        region=store.region,
        scheme=store.scheme,
        endpoint_override=store.endpoint,
        force_virtual_addressing=store.is_virtual,
        connect_timeout=connect_seconds,
        request_timeout=request_seconds,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=attempts),
    )
    return _Client(store, files)
