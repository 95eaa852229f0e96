"""What tasks are given beside their function: together with it while it is small, else as a broadcast."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass
from typing import Generic, TypeVar

from pyspark import Broadcast
from pyspark.sql import SparkSession

from connectors.compiled import instance

T = TypeVar("T")

# A function of more than a megabyte PySpark broadcasts by itself, and leaves the file of it behind.
_MOST_BYTES = 512 << 10
# Spark releases a broadcast once no plan leads to it, but for the file that Python wrote it to, which stays as long as
# the context: on the driver it is what tasks read.
_FILE = "FileOfBroadcast"
_FILE_SOURCE = """
import java.lang.ref.Cleaner;

public class FileOfBroadcast implements Runnable {
    private static final Cleaner CLEANER = Cleaner.create();
    private final String path;

    public FileOfBroadcast(String path) {
        this.path = path;
    }

    public void endsWith(Object broadcast) {
        CLEANER.register(broadcast, this);
    }

    public void run() {
        new java.io.File(path).delete();
    }
}
"""


@dataclass(frozen=True, slots=True)
class Published(Generic[T]):
    """A value for tasks: they may run as often, and as late, as a plan that leads to them is there.

    Values of the same `digest` are equal.
    """

    digest: str
    _held: T | Broadcast[T]

    @staticmethod
    def of(spark: SparkSession, value: T) -> Published[T]:
        """The value as it is at this moment; a classic session is needed."""
        pickled = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        digest = hashlib.blake2b(pickled, digest_size=16).hexdigest()
        if len(pickled) <= _MOST_BYTES:
            return Published(digest, value)
        held = spark.sparkContext.broadcast(value)
        instance(spark, _FILE, _FILE_SOURCE, held._path).endsWith(held._jbroadcast)  # noqa: SLF001 - no other door
        return Published(digest, held)

    @property
    def value(self) -> T:
        """The value, of which a worker holds one for all tasks that it runs."""
        return self._held.value if isinstance(self._held, Broadcast) else self._held
