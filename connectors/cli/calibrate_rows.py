"""Rates of rows above scans and of builds: each from the growth of a query of one task with its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from connectors.builds.materialized import MaterializedBuild, TooMany, driver_rows, local_rows
from connectors.cli.calibrate_trials import Measure, Step, Trials
from connectors.jobs.runner import Build, BuildScheduler
from connectors.spark.jvm import optimized_plan
from pruning.options import PruningOptions
from pruning.reasons import Reason

# The parts of a shuffle, and of a sort or an aggregate so many distinct values.
_PARTS, _GROUPS = 8, 10_007
_SUBJECT = "calibration"
Of = Callable[[SparkSession, int], Step]


def rows_above(spark: SparkSession, trials: Trials) -> Iterator[Measure]:
    """The rates of rows in hash tables, exchanges, sorts and aggregates."""
    rows = max(4, trials.rows // 2)

    def growth(of: Of, without: Of) -> float:
        return trials.growth(lambda count: of(spark, count), rows, lambda count: without(spark, count))

    yield "hashed_row", lambda: growth(_hashed, _counted)
    yield "exchanged_row", lambda: growth(_exchanged, _plain)
    yield "sorted_row", lambda: growth(_sorted, _plain)
    yield "grouped_row", lambda: growth(_grouped, _counted)


def _made(spark: SparkSession, count: int) -> DataFrame:
    """Rows of four columns in one partition, in no order of `k`."""
    columns = ("xxhash64(id) AS k", f"id % {_GROUPS} AS g", "id AS v", "id % 100 AS w")
    return spark.range(0, count, 1, 1).selectExpr(*columns)


def _plain(spark: SparkSession, count: int) -> Step:
    return lambda: _last(_made(spark, count)).collect()


def _counted(spark: SparkSession, count: int) -> Step:
    return lambda: _made(spark, count).agg(F.max("k")).collect()


def _last(rows: DataFrame) -> DataFrame:
    """One row; Spark drops a sort below any aggregate that does not depend on the order."""
    return rows.agg(*(F.last(name) for name in ("k", "g", "v", "w")))


def _hashed(spark: SparkSession, count: int) -> Step:
    one = spark.range(0, 1, 1, 1).selectExpr("xxhash64(id) AS k")
    return lambda: _last(one.join(F.broadcast(_made(spark, count)), "k")).collect()


def _exchanged(spark: SparkSession, count: int) -> Step:
    # Read by one task, as they are written.
    return lambda: _last(_made(spark, count).repartition(_PARTS, "k").coalesce(1)).collect()


def _sorted(spark: SparkSession, count: int) -> Step:
    return lambda: _last(_made(spark, count).sortWithinPartitions("k")).collect()


def _grouped(spark: SparkSession, count: int) -> Step:
    grouped = F.sum("v").alias("k"), F.max("v").alias("v"), F.max("w").alias("w")
    return lambda: _last(_made(spark, count).groupBy("g").agg(*grouped)).collect()


@dataclass(frozen=True, slots=True, eq=False)
class TimedBuild:
    """A build of all rows of a file as `prune()` runs it: its rows in the driver, and the summary of their keys."""

    spark: SparkSession
    plan: Any
    options: PruningOptions

    @staticmethod
    def of(spark: SparkSession, file: Path, count: int) -> TimedBuild:
        """A build of `count` rows, which are written to `file`."""
        numbers = np.arange(count)
        pq.write_table(pa.table({"key": numbers, "month": numbers // 31}), file)
        plan = optimized_plan(spark.read.parquet(f"file://{file}").where("month >= 0"))
        return TimedBuild(spark, plan, PruningOptions())

    def by_job(self) -> object:
        """Runs the build as a job, in a thread of its own; `RuntimeError` if it fails."""

        def rows() -> object:
            return self._keys(local_rows(self.spark, self.plan, _SUBJECT, self.options.limits))

        (found,) = BuildScheduler.of(self.spark, self.options).run_all([Build(_SUBJECT, rows)])
        match found:
            case Reason() | None:
                raise RuntimeError(f"Cannot time a build: found {found}")
            case _:
                return found

    def on_driver(self) -> object:
        """Computes the build without a job; None where settings of the session refuse that."""
        return self._keys(driver_rows(self.spark, self.plan, _SUBJECT, self.options.limits))

    def _keys(self, rows: MaterializedBuild | TooMany | None) -> object:
        if not isinstance(rows, MaterializedBuild):
            return None
        return rows.keys(0, self.plan.output().apply(0), self.options, _SUBJECT)


def builds(spark: SparkSession, folder: Path, trials: Trials) -> Iterator[Measure]:
    """The rates of builds. The times of both kinds are those of the smaller one, rows included."""
    few = few_rows(trials)
    small, large = (TimedBuild.of(spark, folder / f"build-{count}.parquet", count) for count in (few, trials.kept))
    yield "kept_row", lambda: trials.more(large.by_job, small.by_job) / (trials.kept - few)
    yield "build_job", lambda: trials.took(small.by_job)
    # 0 leaves the default.
    has_driver = small.on_driver() is not None and large.on_driver() is not None
    on_driver = partial(trials.more, large.on_driver, small.on_driver)
    yield "driver_row", lambda: on_driver() / (trials.kept - few) if has_driver else 0.0
    yield "driver_build", lambda: trials.took(small.on_driver) if has_driver else 0.0


def few_rows(trials: Trials) -> int:
    """The rows of the smaller build."""
    return max(1, trials.kept // 80)
