"""`spark_session()`: a local Spark session with Delta Lake; `option_confs()`: the pruning options in its confs.

Importing this module loads no engine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from connectors.spark.java_check import java_problem
from connectors.spark.versions import INSTALL, is_installed, require_spark, unknown_version, version_refusal
from pruning.errors import EnvironmentProblem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STDERR = 2
_DELTA = "delta"
_PACKAGES = "spark.jars.packages"
_DEFAULTS: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Delta's packages ask for a second Hadoop beside Spark's own: half of the first start's download.
        "spark.jars.excludes": "org.apache.hadoop:hadoop-client-api,org.apache.hadoop:hadoop-client-runtime",
        # A machine's host name may resolve to an address that nothing listens on.
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        # Delta cuts a table's state into 50 tasks by default, for a cluster.
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Python workers must find this project also where it is not installed.
        "spark.executorEnv.PYTHONPATH": str(Path(__file__).resolve().parents[2]),
    }
)
# Confs for measurements: Spark's counter of bytes misses vectored reads. Without them a large buffer would read far
# beyond each chunk; with a small buffer Spark reads about the same bytes as its vectored reads.
COUNTABLE: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.shuffle.partitions": "2",
        "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
        "spark.buffer.size": "4096",
    }
)


def spark_session(
    app_name: str,
    *,
    master: str = "local[2]",
    conf: Mapping[str, str] = MappingProxyType({}),
    log: Path | None = None,
) -> SparkSession:
    """The running session with the entries of `conf`, or one started for this process, whose defaults they replace.

    Packages named in `conf` come beside Delta's. The output of Spark's Java process goes to standard
    error, or is appended to the file `log`. A setting that only a start can make (memory, packages, log) is
    without effect where a session runs already. Raises `EnvironmentProblem` if Spark or Delta Lake is
    not installed, if there is no usable Java, or if Spark does not come up.
    """
    require_spark("start a session")
    require_delta("start a session")
    from delta import configure_spark_with_delta_pip  # noqa: PLC0415 - importing this module loads no engine
    from pyspark.errors import PySparkException, PySparkRuntimeError  # noqa: PLC0415 - the same
    from pyspark.sql import SparkSession  # noqa: PLC0415 - the same

    # PySpark has no public name for the session that another thread has started.
    running = SparkSession.getActiveSession() or SparkSession._instantiatedSession  # noqa: SLF001
    if running is not None and running._sc._jsc is not None:  # noqa: SLF001
        # Spark would set the defaults in a session of the user, too, and in another one than that of this thread.
        for name, value in conf.items():
            with suppress(PySparkException):
                running.conf.set(name, value)
        return running
    if problem := java_problem():
        raise EnvironmentProblem(problem)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app_name).master(master).config(map={**_DEFAULTS, **conf})
    packages = [name.strip() for name in conf.get(_PACKAGES, "").split(",") if name.strip()]
    try:
        with _standard_error_to(log):
            return configure_spark_with_delta_pip(builder, packages).getOrCreate()
    except PySparkRuntimeError as error:
        raise EnvironmentProblem(
            f"Cannot start Spark for {app_name!r}: its Java process ended, "
            f"see {'the lines above' if log is None else repr(str(log))}; {_start_remedy()}"
        ) from error


def _start_remedy() -> str:
    from pyspark import __version__  # noqa: PLC0415 - importing this module loads no engine

    # Delta Lake may have no jars for a version that is not known.
    unknown = unknown_version(__version__)
    return str(unknown or "the first start needs the network once, to fetch the jars of Delta Lake")


@contextmanager
def _standard_error_to(log: Path | None) -> Iterator[None]:
    """A context in which new processes inherit the file `log` as standard error; restores this process's stream."""
    if log is None:
        yield
        return
    sys.stderr.flush()
    ours = os.dup(_STDERR)
    try:
        with log.open("a") as file:
            os.dup2(file.fileno(), _STDERR)
        yield
    finally:
        os.dup2(ours, _STDERR)
        os.close(ours)


def option_confs(spark: SparkSession, prefix: str) -> Mapping[str, str]:
    """The confs of a session whose names begin with `prefix`."""
    from connectors.spark.confs import confs_beginning_with  # noqa: PLC0415 - importing this module loads no engine
    from connectors.spark.jvm import has_jvm  # noqa: PLC0415 - the same

    if not has_jvm(spark) or version_refusal(spark) is not None:
        # Before version 4 a classic session has no public method for all of its confs.
        every: Mapping[str, str] = getattr(spark.conf, "getAll", {})
        return {name: text for name, text in every.items() if name.startswith(prefix)}
    # PySpark's `getAll` makes a call for each conf.
    return confs_beginning_with(spark, prefix)


def require_delta(asked: str) -> None:
    """Raises `EnvironmentProblem` where the package delta-spark is not installed; `asked` is what needs it."""
    if not is_installed(_DELTA):
        raise EnvironmentProblem(f"Cannot {asked} without Delta Lake: found no package delta-spark; {INSTALL}")


def delta_remedy() -> str:
    """The way to a session that reads Delta tables, from what is installed here."""
    start = "start it by delta.configure_spark_with_delta_pip, or by pruning.spark_session"
    return start if is_installed(_DELTA) else f"{INSTALL} brings the package delta-spark, then {start}"
