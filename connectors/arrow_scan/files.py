"""Parquet files as Spark's Python workers open them: local files, and objects of an S3 store.

The module imports nothing but Arrow, limits and the names of buckets. A file is the one that was listed, or an error is
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
    """A file is another one than was listed, or there is none."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """Row groups of one file; `path` is one of this machine, or a URI of an S3 store.

    - `leaves`: for each column of the result the leaf of the file that holds it, None where it has none
    - `constants`: for each column without a leaf the value of all its rows
    - `size`, `modified`: bytes and milliseconds since 1970 as they were listed; None where they say nothing
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
        """Make chunks ready to be decoded, until the next call; the bytes that were read for it."""

    def check(self) -> None:
        """Nothing where all that was read until now is of the file that was listed, else an `OSError`."""

    def read_besides(self) -> int:
        """The bytes that were read but not fetched, such as footers, since the last call; nothing is under way then."""

    def close(self) -> None:
        """Holds nothing any more."""


@contextmanager
def open_file(part: FilePart, stores: Mapping[str, S3Access], limits: Limits = LIMITS) -> Iterator[OpenFile]:
    """The file that was listed, an `OtherFileError` where there is another one or none.

    `stores` are the buckets in which files may lie; an `OSError` where one gives no good answer.
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
    """A file of this machine: as long as it is open it stays what it was when it was opened."""

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
        """Nothing: the system reads ahead."""

    def fetch(self, ranges: Sequence[Range]) -> int:
        """Arrow reads just these."""
        return sum(size for _, size in ranges)

    def check(self) -> None:
        """Nothing."""

    def read_besides(self) -> int:
        """The footer."""
        found, self._besides = self._besides, 0
        return found

    def close(self) -> None:
        """Closes it."""
        self.parquet.close(force=True)


class _StoredObject:
    """An object of an S3 store: announced chunks come in a few requests at a time, each of exactly these bytes.

    Memory: the chunks that were fetched last, and of those that were announced `store_request_bytes`, or one. Objects
    are not changed but replaced, so one that has the same ETag as when it was opened was that all the time between.
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
        """Asks for as many as are few requests and bytes, in their order; what is of other row groups is given up."""
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
        """Ranges that follow each other are one request, up to some megabytes."""
        wanted = _joined(ranges, self._limits.store_request_bytes)
        self._ranges.held.clear()
        under_way = [
            self._ahead.pop(each)[1] if each in self._ahead else self._pool.submit(self._read, *each) for each in wanted
        ]
        found = [each.result() for each in under_way]
        # Only here: a look at the object covers what had arrived before it.
        self._is_checked = False
        self._ranges.held.update(zip((begin for begin, _ in wanted), map(pa.py_buffer, found), strict=True))
        return sum(size for _, size in wanted)

    def check(self) -> None:
        """Asks the store by one request, but of files that nobody replaces."""
        if self._is_checked or not self._may_be_replaced:
            return
        self._object = self._opened()
        if self._told_identity() != self._identity:
            raise _replaced(self._uri)
        self._is_checked = True

    def read_besides(self) -> int:
        """Footers, and what was announced in vain."""
        self._give_up(list(self._ahead))
        found, self._ranges.besides = self._ranges.besides, 0
        return found

    def close(self) -> None:
        """Ends what is under way."""
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
        """Where requests tell seconds, lists may tell parts of them."""
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
    """A file for Arrow: ranges that are held, and any other range by a request for it."""

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
        """Holds nothing any more."""
        self.held.clear()
        super().close()

    def tell(self) -> int:
        """Where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Where the next read begins."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1) -> Any:
        """Bytes, or a buffer of them: those that are held are not copied."""
        left = max(0, self._size - self._at)
        size = left if size < 0 else min(size, left)
        begin, self._at = self._at, self._at + size
        for start, buffer in self.held.items():
            if start <= begin and begin + size <= start + buffer.size:
                return buffer.slice(begin - start, size)
        self.besides += size
        return self._read(begin, size) if size else b""


def _joined(ranges: Sequence[Range], most_bytes: int) -> list[Range]:
    """The same bytes in as few ranges as there are, none cut, and none joined to more than `most_bytes`.

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
    """A store, and what asks it."""

    access: S3Access
    files: Any


@lru_cache(8)
def _client(store: S3Access, attempts: int, connect_seconds: float, request_seconds: float) -> _Client:
    """One for all tasks of a worker: each connects anew."""
    # Where nothing lies in a store, it is not needed, and not every build of Arrow has it.
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
