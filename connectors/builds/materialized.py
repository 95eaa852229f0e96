"""Builds whose rows come to the driver's JVM as a local relation, so that the query does not run them again."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from connectors.connector_names import file_formats
from connectors.jobs.executed_plan import execution_released
from connectors.keys.frame import DRIVER_PARTITIONS, key_types
from connectors.keys.local import built
from connectors.registry import before_execution
from connectors.spark.jvm import JavaFile, instance, jvm_session
from connectors.spark.own_queries import own_session
from connectors.spark.plan_facts import refused
from connectors.spark.transfer import long_bytes
from pruning.keys.key_set import KeyLimits
from pruning.keys.summary import KeySummary
from pruning.limits import LIMITS, Limits
from pruning.options import PruningOptions
from pruning.reasons import Reason
from pruning.values.types import ValueType

logger = logging.getLogger("scanprune")

_ROWS = JavaFile("connectors.builds", "MaterializedRows", others=("DriverScan", "DriverTask", "RddRelation"))


@dataclass(frozen=True, slots=True)
class TooMany:
    """A build that reached the limit of rows, so that it has at least so many."""

    count: int


@dataclass(frozen=True, slots=True, eq=False)
class MaterializedBuild:
    """All rows of a plan in the driver's JVM; `nbytes` is their size as `UnsafeRow`."""

    count: int
    nbytes: int
    _rows: Any
    _spark: SparkSession
    is_local: bool = True
    _keys: dict[int, KeySummary | Reason] = field(default_factory=dict)

    def keys(self, at: int, column: Any, options: PruningOptions, name: str) -> KeySummary | Reason:
        """The summary of the values of column number `at`, whose attribute is `column`. No job is run."""
        if at not in self._keys:
            types = key_types(StructType.fromJson(json.loads(self._rows.type(column))), name)
            self._keys[at] = types if isinstance(types, Reason) else self._summary(at, column, types, options, name)
        return self._keys[at]

    def _summary(
        self, at: int, column: Any, types: Sequence[ValueType], options: PruningOptions, name: str
    ) -> KeySummary:
        return built(self._values(at, column), types, KeyLimits.of(options)).finish(
            1, source=f"rows of {name}", subject=name
        )

    def tuples(self, columns: Mapping[int, Any], options: PruningOptions, name: str) -> KeySummary | Reason:
        """The summary of several columns together; `columns` maps their numbers to attributes. No job is run."""
        fields = [StructType.fromJson(json.loads(self._rows.type(each))).fields[0] for each in columns.values()]
        types = key_types(StructType(fields), name)
        if isinstance(types, Reason):
            return types
        values = [self._values(at, column) for at, column in columns.items()]
        rows = pa.table({f"k{at}": each.column(0) for at, each in enumerate(values)})
        return built(rows, types, KeyLimits.of(options)).finish(1, source=f"rows of {name}", subject=name)

    def _values(self, at: int, column: Any) -> pa.Table:
        return pa.ipc.open_stream(long_bytes(self._spark, self._rows.values(at, column))).read_all()

    def detached(self) -> MaterializedRows:
        """The rows without session and plan, for a cache."""
        return MaterializedRows(self.count, self.nbytes, self._rows)

    def as_relation(self, plan: Any, *, keeps_scan: bool = False) -> Any:
        """A local relation of the rows with the column ids of `plan`; with `keeps_scan` no rows are a scan, too."""
        return self._rows.asRelation(jvm_session(self._spark), plan, keeps_scan)


@dataclass(frozen=True, slots=True, eq=False)
class MaterializedRows:
    """Rows on the heap of the driver that hold no session and no plan."""

    count: int
    nbytes: int
    _rows: Any

    def of(self, spark: SparkSession) -> MaterializedBuild:
        """The build of these rows in a session."""
        return MaterializedBuild(self.count, self.nbytes, self._rows, spark)


def driver_rows(
    spark: SparkSession, plan: Any, name: str, limits: Limits = LIMITS
) -> MaterializedBuild | TooMany | None:
    """The rows of a plan over few small files, computed without a job; None if a job has to do it.

    Trouble is left to the job, so an error is raised, or is none, as if this was never called.
    """
    if not limits.driver_scan_files or not limits.driver_scan_seconds:
        return None
    try:
        before_execution(spark, plan)
        rows = instance(spark, _ROWS, jvm_session(spark), plan, limits.joined_rows, limits.joined_long_rows)
        found = _collected_here(spark, rows, limits)
        if (why := refused(found)) is not None:
            logger.debug("The build of %s is run as a job: %s", name, why)
            return None
        count, nbytes = map(int, found.split())
        return MaterializedBuild(count, nbytes, rows, spark) if count < int(rows.most()) else TooMany(count)
    except (Py4JError, PySparkException):
        logger.debug("The build of %s failed on the driver", name, exc_info=True)
        return None


def _collected_here(spark: SparkSession, rows: Any, limits: Limits) -> str:
    sizes = limits.driver_scan_files, limits.driver_scan_bytes, limits.driver_scan_rows
    try:
        formats = " ".join(sorted(file_formats(spark)))
        return str(rows.collectHere(formats, *sizes, ceil(limits.driver_scan_seconds * 1000)))
    except BaseException:
        # An interrupt of this thread does not reach the JVM.
        with suppress(Py4JError, OSError):
            rows.cancel()
        raise


def local_rows(spark: SparkSession, plan: Any, name: str, limits: Limits = LIMITS) -> MaterializedBuild | TooMany:
    """The rows of a plan by a job, which is an execution that query listeners are not told of."""
    logger.debug("The build of %s runs as a job", name)
    # Few calls over py4j, since each waits for the calls of concurrent builds.
    rows = instance(spark, _ROWS, own_session(spark), plan, limits.joined_rows, limits.joined_long_rows)
    execution = rows.execution(DRIVER_PARTITIONS)
    before_execution(spark, execution.optimizedPlan())
    with execution_released(spark, execution):
        count = int(rows.collect())
    # A result with the limit of rows may have been cut.
    return MaterializedBuild(count, int(rows.bytes()), rows, spark) if count < int(rows.most()) else TooMany(count)
