"""Files through Spark's own file systems or the local one: footers, existence, and a test for names of tables."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from connectors.spark.jvm import hadoop_conf, has_jvm, java_message, java_names

# Threads that read footers: 1,000 of 96 column chunks take 1.9 s on the driver.
FOOTER_THREADS = 16
TRAILER = 8
_FILE_SCHEME = "file:"
_READ_POLICY = "parquet, columnar, vector, random, adaptive"
# Replies of the JVM above 8 KiB of base64 wait 40 ms for an acknowledgement.
_REPLY = 6000
# Replies of the JVM in which a footer comes, since a large one waits 40 ms; a longer footer comes in one.
_FOOTER_REPLIES = 8
# Bytes of the end of a file that are read at once, which hold all of nearly every footer.
_TAIL_BYTES = 64 << 10


class Storage(Protocol):
    """A reader of footers."""

    def read_footer(self, uri: str, size: int) -> bytes:
        """A Parquet footer with its trailer, the last bytes of the file of `size` bytes at `uri`.

        `OSError` where the file cannot be read or is another one, `ValueError` where it does not end like Parquet.
        """


class LocalStorage:
    """Files of this machine, read without Spark."""

    def read_footer(self, uri: str, size: int) -> bytes:
        """A Parquet footer with its trailer; `OSError`, `ValueError` as `Storage` says."""
        path = local_path(uri)
        if path is None:
            msg = f"Cannot read {uri!r} without a JVM: expected a path of this machine"
            raise OSError(msg)
        with path.open("rb") as file:
            found = os.fstat(file.fileno()).st_size
            if found != size:
                msg = f"Cannot trust {uri!r}: it has {found} bytes where {size} were listed, so it was replaced"
                raise OSError(msg)
            file.seek(max(0, size - _TAIL_BYTES))
            tail = file.read(_TAIL_BYTES)
            length = whole_length(tail, size)
            if length > len(tail):
                file.seek(size - length)
                return file.read(length)
            return tail[-length:]


class SparkStorage:
    """Local files directly, all others through Spark's Hadoop file systems, so with its credentials."""

    def __init__(self, spark: SparkSession) -> None:
        self._local, self._spark = LocalStorage(), spark
        jvm = java_names(spark)
        self._path_class, self._uri_class = jvm.org.apache.hadoop.fs.Path, jvm.java.net.URI
        self._buffer_class = jvm.java.io.BufferedInputStream
        self._lock = threading.Lock()
        self._known_conf: Any = None

    def read_footer(self, uri: str, size: int) -> bytes:
        """A Parquet footer with its trailer; `OSError`, `ValueError` as `Storage` says."""
        if local_path(uri) is not None:
            return self._local.read_footer(uri, size)
        try:
            return self._remote_footer(uri, size)
        except Py4JError as error:
            msg = f"Cannot read {uri!r}: {java_message(error)}"
            raise OSError(msg) from error

    def _remote_footer(self, uri: str, size: int) -> bytes:
        path = self._path_class(self._uri_class(uri))
        builder = path.getFileSystem(self._conf()).openFile(path)
        # A known length spares object stores a request, and the policy keeps them from reading ahead.
        builder.opt("fs.option.openfile.length", str(size))
        builder.opt("fs.option.openfile.read.policy", _READ_POLICY)
        stream = builder.build().get()
        try:
            return self._footer_of(stream, size)
        finally:
            stream.close()

    def _conf(self) -> Any:
        """The session's file system settings, read once, since Java copies a thousand settings each time."""
        with self._lock:
            if self._known_conf is None:
                self._known_conf = hadoop_conf(self._spark)
            return self._known_conf

    def _footer_of(self, stream: Any, size: int) -> bytes:
        """The footer from one read of the file's tail; only the needed bytes leave the JVM."""
        held = min(_TAIL_BYTES, size)
        stream.seek(size - held)
        tail = self._buffer_class(stream, held or 1)
        tail.mark(held)
        tail.skipNBytes(max(0, held - TRAILER))
        length = whole_length(bytes(tail.readNBytes(TRAILER)), size)
        if length > held:
            stream.seek(size - length)
            return bytes(stream.readNBytes(length))
        tail.reset()
        tail.skipNBytes(held - length)
        reply = _REPLY if length <= _REPLY * _FOOTER_REPLIES else length
        return b"".join(bytes(tail.readNBytes(min(reply, length - at))) for at in range(0, length, reply))


def whole_length(tail: bytes, size: int) -> int:
    """The number of bytes of the footer and its trailer, from the last bytes of a file of `size` bytes.

    >>> whole_length((30).to_bytes(4, "little") + b"PAR1", size=100)
    38
    """
    match tail[-4:]:
        case b"PAR1":
            length = int.from_bytes(tail[-TRAILER:-4], "little") + TRAILER
        case b"PARE":
            msg = "the footer is encrypted"
            raise ValueError(msg)
        case other:
            msg = f"not a Parquet file: it ends in {other!r} instead of b'PAR1'"
            raise ValueError(msg)
    if length > size:
        msg = f"not a whole Parquet file: a footer of {length} bytes cannot lie in {size}"
        raise ValueError(msg)
    return length


def storage_of(spark: SparkSession) -> Storage:
    """The reader of a session's files: by the JVM's file systems if there is a JVM, else local files only."""
    return SparkStorage(spark) if has_jvm(spark) else LocalStorage()


def exists(spark: SparkSession, path: str) -> bool:
    """True if a classic session's file systems find something under exactly this name; `OSError` if they fail."""
    jvm = java_names(spark)
    try:
        found = jvm.org.apache.hadoop.fs.Path(path)
        return bool(found.getFileSystem(hadoop_conf(spark)).exists(found))
    except Py4JError as error:
        msg = f"Cannot look for {path!r}: {java_message(error)}"
        raise OSError(msg) from error


def local_path(uri: str) -> Path | None:
    """The path of this machine behind a `file:` URI or an absolute path; None for any other storage.

    A URI is percent-encoded, a path is taken as it is.

    >>> local_path("file:///a%20b/100%25.parquet").as_posix(), local_path("/a%20b").as_posix()
    ('/a b/100%.parquet', '/a%20b')
    >>> local_path("s3a://bucket/key") is None
    True
    """
    if uri.startswith(_FILE_SCHEME):
        rest = uri[len(_FILE_SCHEME) :]
        return Path(unquote("/" + rest.lstrip("/")))
    return Path(uri) if uri.startswith("/") else None


# The quoted parts of a name may hold anything, as in parquet.`/data/sales`.
_IN_BACKTICKS = re.compile(r"`(?:[^`]|``)*`")


def is_name(spark: SparkSession, source: str) -> bool:
    """True for a name in the catalog; a text with a slash outside of backticks is a path.

    A word that names both a table and a file in the working directory is the table, as for Spark.
    """
    if "/" in _IN_BACKTICKS.sub("x", source):
        return False
    return not Path(source).exists() or _is_in_catalog(spark, source)


def _is_in_catalog(spark: SparkSession, source: str) -> bool:
    try:
        return spark.catalog.tableExists(source)
    except PySparkException:
        # Not a valid name, such as `sales.parquet.bak`.
        return False
