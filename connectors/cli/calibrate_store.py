"""Rates of a store by Spark's own file systems: the wait for a first byte, and the time of each further one."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from connectors.cli.calibrate_trials import Trials
from connectors.spark.jvm import hadoop_conf, java_names
from pruning.cost.rates import NANOSECONDS, CostRates

# Bytes that Java takes from a stream at a time.
_BUFFER = 1 << 16
_TRIALS = Trials()


@dataclass(frozen=True, slots=True, eq=False)
class _Store:
    """Files of random bytes in a folder of a file system, by their sizes."""

    spark: SparkSession
    system: Any
    folder: Any

    def path(self, size: int) -> Any:
        return java_names(self.spark).org.apache.hadoop.fs.Path(self.folder, f"{size}.bytes")

    def write(self, size: int, local: Path) -> None:
        file = local / f"{size}.bytes"
        file.write_bytes(os.urandom(size))
        source = java_names(self.spark).org.apache.hadoop.fs.Path(f"file://{file}")
        self.system.copyFromLocalFile(source, self.path(size))

    def read(self, size: int) -> None:
        """Reads all of a file in one call to the JVM."""
        jvm = java_names(self.spark)
        stream = self.system.open(self.path(size))
        try:
            jvm.org.apache.hadoop.io.IOUtils.copyBytes(
                stream,
                jvm.java.io.OutputStream.nullOutputStream(),
                _BUFFER,
                False,  # noqa: FBT003 - a call to Java
            )
        finally:
            stream.close()


@contextmanager
def _store(spark: SparkSession, uri: str) -> Iterator[_Store]:
    """A new folder below `uri`, which is removed."""
    folder = java_names(spark).org.apache.hadoop.fs.Path(f"{uri.rstrip('/')}/_scanprune-{uuid.uuid4().hex}")
    system = folder.getFileSystem(hadoop_conf(spark))
    try:
        yield _Store(spark, system, folder)
    finally:
        system.delete(folder, True)  # noqa: FBT003 - a call to Java


def store_rates(
    spark: SparkSession, uri: str, progress: Callable[[str, float], None] = lambda *_: None, trials: Trials = _TRIALS
) -> dict[str, float]:
    """The rates of a store in nanoseconds, by name; temporary files are made in a new folder below `uri`."""
    large, small = trials.store_bytes, max(1, trials.store_bytes // 4)
    with tempfile.TemporaryDirectory() as local, _store(spark, uri) as store:
        progress("files of a store", 0.0)
        for size in (1, small, large):
            store.write(size, Path(local))
        progress("remote_request", 0.3)
        wait = trials.took(lambda: store.read(1))
        progress("remote_byte", 0.5)
        each = trials.more(lambda: store.read(large), lambda: store.read(small)) / (large - small)
    rates = {"remote_byte": each * NANOSECONDS, "remote_request": wait * NANOSECONDS}
    # Stores differ by more than machines do; where load hid the difference, the rate keeps its default.
    return {name: rate if rate > 0.0 else getattr(CostRates(), name) for name, rate in rates.items()}
