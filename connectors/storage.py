"""File access beside Spark's scans: the last bytes of a file, local or wherever Spark's own file systems reach."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

_FILE_SCHEME = "file:"
_READ_POLICY = "parquet, columnar, vector, random, adaptive"


class Storage(Protocol):
    """What reads footers."""

    def read_tail(self, uri: str, size: int, length: int) -> bytes:
        """The last `length` bytes of the file of `size` bytes at `uri`; `OSError` where it cannot be read."""


class LocalStorage:
    """Files of this machine, read without Spark."""

    def read_tail(self, uri: str, size: int, length: int) -> bytes:
        """The last `length` bytes of the file of `size` bytes at `uri`; `OSError` where it cannot be read."""
        path = local_path(uri)
        if path is None:
            msg = f"Cannot read {uri!r} without a JVM: expected a path of this machine"
            raise OSError(msg)
        with path.open("rb") as file:
            found = os.fstat(file.fileno()).st_size
            if found != size:
                msg = f"Cannot trust {uri!r}: it has {found} bytes where {size} were listed, so it was replaced"
                raise OSError(msg)
            file.seek(size - length)
            return file.read(length)


class SparkStorage:
    """Local files directly, all others through Spark's Hadoop file systems, so with its credentials."""

    def __init__(self, spark: SparkSession) -> None:
        self._local = LocalStorage()
        self._jvm: Any = spark._jvm  # noqa: SLF001 - the JVM's file systems have no public door
        self._conf: Any = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001

    def read_tail(self, uri: str, size: int, length: int) -> bytes:
        """The last `length` bytes of the file of `size` bytes at `uri`; `OSError` where it cannot be read."""
        if local_path(uri) is not None:
            return self._local.read_tail(uri, size, length)
        try:
            return self._remote_tail(uri, size, length)
        except Py4JError as error:
            msg = f"Cannot read {uri!r}: {java_message(error)}"
            raise OSError(msg) from error

    def _remote_tail(self, uri: str, size: int, length: int) -> bytes:
        path = self._jvm.org.apache.hadoop.fs.Path(self._jvm.java.net.URI(uri))
        builder = path.getFileSystem(self._conf).openFile(path)
        # A known length spares object stores a request, and the policy keeps them from reading ahead.
        builder.opt("fs.option.openfile.length", str(size))
        builder.opt("fs.option.openfile.read.policy", _READ_POLICY)
        stream = builder.build().get()
        try:
            stream.seek(size - length)
            return bytes(stream.readNBytes(length))
        finally:
            stream.close()


def storage_of(spark: SparkSession) -> Storage:
    """What reads files for a session: the JVM's file systems where it has a JVM, else this machine's alone."""
    return SparkStorage(spark) if has_jvm(spark) else LocalStorage()


def has_jvm(spark: SparkSession) -> bool:
    """False for Spark Connect, whose session is a remote one."""
    return not type(spark).__module__.startswith("pyspark.sql.connect")


def exists(spark: SparkSession, path: str) -> bool:
    """True where a classic session's file systems find something under exactly this name; `OSError` where they fail."""
    jvm: Any = spark._jvm  # noqa: SLF001
    try:
        found = jvm.org.apache.hadoop.fs.Path(path)
        return bool(found.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).exists(found))  # noqa: SLF001
    except Py4JError as error:
        msg = f"Cannot look for {path!r}: {java_message(error)}"
        raise OSError(msg) from error


def is_path(source: str) -> bool:
    """True where `source` names files rather than a table of the catalog.

    >>> is_path("/data/sales"), is_path("s3a://bucket/sales"), is_path("shop.sales")
    (True, True, False)
    """
    return "/" in source or Path(source).exists()


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


def java_message(error: Py4JError) -> str:
    """What the JVM said, in one line, without its stack."""
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.toString()).splitlines()[0]
    return str(error).splitlines()[0]
