"""Spark sessions on the cluster that read the object store."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from connectors.spark.session import spark_session
from sample_data.object_store.s3a import s3a_conf
from sample_data.object_store.store import Access
from tests.cluster.faults import FOLDER

FAULTS, DRIVER = "faults", "driver"
_DAEMON = "spark.python.daemon.module"
_PYTHONPATH = "spark.executorEnv.PYTHONPATH"
_ROOT = Path(__file__).resolve().parents[2]
_WITHOUT_PACKAGE = Path(__file__).with_name("without_package")
_SECONDS_TO_START, _SECONDS_BETWEEN_LOOKS = 60.0, 0.05
_QUICK_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


def conf(master: str, access: Access, folder: Path) -> Mapping[str, str]:
    """Settings for executors with one core and 1 GB, speculative execution, and faults in a folder below `folder`."""
    return {
        **s3a_conf(access),
        "spark.master": master,
        "spark.executor.memory": "1g",
        "spark.executor.cores": "1",
        "spark.executor.extraJavaOptions": _QUICK_JAVA,
        "spark.local.dir": str(folder / DRIVER),
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.buffer.pageSize": "1m",
        "spark.speculation": "true",
        "spark.speculation.interval": "200ms",
        "spark.speculation.minTaskRuntime": "3s",
        "spark.speculation.multiplier": "2",
        "spark.speculation.quantile": "0.5",
        f"spark.executorEnv.{FOLDER}": str(folder / FAULTS),
        _DAEMON: "tests.cluster.faulty_daemon",
        _PYTHONPATH: str(_ROOT),
    }


def hidden_on(hosts: str, confs: Mapping[str, str]) -> Mapping[str, str]:
    """The settings with the package hidden from Python workers on these comma-separated hosts."""
    return {
        **confs,
        _DAEMON: "pyspark.daemon",
        _PYTHONPATH: os.pathsep.join((str(_WITHOUT_PACKAGE), str(_ROOT))),
        "spark.executorEnv.SCANPRUNE_HIDDEN_ON": hosts,
    }


@contextmanager
def session(name: str, confs: Mapping[str, str], log: Path) -> Iterator[SparkSession]:
    """A session on the cluster, with both executors registered."""
    os.environ["SPARK_SUBMIT_OPTS"] = _QUICK_JAVA
    spark = spark_session(f"scanprune cluster: {name}", conf=confs, log=log)
    try:
        wait_for_executors(spark)
        yield spark
    finally:
        spark.stop()


def wait_for_executors(spark: SparkSession, count: int = 2) -> None:
    """Waits until `count` executors are registered."""
    context = spark.sparkContext._jsc.sc()
    until = time.monotonic() + _SECONDS_TO_START
    # The list of executors includes the driver.
    while len(context.statusTracker().getExecutorInfos()) <= count:
        if time.monotonic() > until:
            raise TimeoutError(f"there are no {count} executors after {_SECONDS_TO_START:g} seconds")
        time.sleep(_SECONDS_BETWEEN_LOOKS)
