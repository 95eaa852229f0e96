"""The connectors of a session, and the tables that they claim: by path, by catalog name, or as a leaf of a plan.

Delta and Parquet are built in. A package adds a connector by an entry point of the group `scanprune.connectors`, and a
session by `register()`; both are asked before those that are built in.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from connectors.base import Connector, ScannedVersion, Table
from connectors.spark.files import is_name
from connectors.spark.jvm import analyzed_plan, frame_of, one_line, optimized_plan
from connectors.spark.plan_facts import no_fingerprint
from connectors.spark.plan_reader import fresh_columns
from connectors.spark.session_state import state_of
from pruning.errors import InvalidOptionError, SourceNotFoundError
from pruning.limits import Limits
from pruning.reasons import Reason, ReasonCode
from pruning.values.ranges import BoolArray

logger = logging.getLogger("scanprune")

_ENTRY_POINTS = "scanprune.connectors"
# Loaded by name, since their packages stand above this module. The last one claims any path.
_BUILT_IN = (("connectors.delta.table", "DELTA"), ("connectors.parquet.table", "PARQUET"))
_VIEW = "view"
_TROUBLE = (Py4JError, PySparkException, ValueError, TypeError, LookupError)


@dataclass(slots=True)
class _Registered:
    """The connectors that a session was given."""

    connectors: list[Connector] = field(default_factory=list)


def register(spark: SparkSession, connector: Connector) -> None:
    """Adds a connector to a session, before all others; one of the same name is replaced."""
    registered = state_of(spark).slot(_Registered)
    registered.connectors = [connector, *(each for each in registered.connectors if each.name != connector.name)]


def connectors_of(spark: SparkSession) -> tuple[Connector, ...]:
    """The connectors of a session, in the order in which they are asked."""
    return (*state_of(spark).slot(_Registered).connectors, *_installed())


@cache
def _installed() -> tuple[Connector, ...]:
    others = [each.load() for each in entry_points(group=_ENTRY_POINTS)]
    return (*others, *(getattr(import_module(module), name) for module, name in _BUILT_IN))


def optimized(df: DataFrame) -> Any:
    """The optimised plan of a query in the JVM, by the first connector that makes it, else by Spark."""
    for each in connectors_of(df.sparkSession):
        plan = each.optimized_plan(df)
        if plan is not None:
            return plan
    return optimized_plan(df)


def observe(spark: SparkSession, plan: Any) -> None:
    """Tells all connectors of an optimised plan that is about to run."""
    for each in connectors_of(spark):
        each.observe(spark, plan)


def scanned_version(spark: SparkSession, index: Any) -> ScannedVersion | None:
    """The version that a file index of an executed plan read; None for tables without versions."""
    return next(filter(None, (each.scanned_version(index) for each in connectors_of(spark))), None)


def open_table(  # noqa: PLR0913 - keywords
    spark: SparkSession,
    source: str,
    *,
    format_: str | None,
    version: int | None,
    timestamp: str | None,
    limits: Limits,
) -> Table:
    """The table called `source`, a path or a catalog name, pinned to one version.

    `SourceNotFoundError` where there is none, `InvalidOptionError` for a format or version it cannot have.
    """
    if version is not None and timestamp is not None:
        msg = f"Cannot read both version {version} and timestamp {timestamp!r} of {source!r}: give one of them"
        raise InvalidOptionError(msg)
    connector = _named(spark, source, format_) if format_ else claiming(spark, source)
    if not connector.has_versions and (version is not None or timestamp is not None):
        versioned = " or ".join(each.name for each in connectors_of(spark) if each.has_versions)
        expected = f"expected a table with versions ({versioned}), found one of {connector.name}"
        msg = f"Cannot read an older version of {source!r}: {expected}"
        raise InvalidOptionError(msg)
    return connector.open(spark, source, version=version, timestamp=timestamp, limits=limits)


def claiming(spark: SparkSession, source: str) -> Connector:
    """The connector of a path or of a table of the catalog."""
    if not is_name(spark, source):
        return next(each for each in connectors_of(spark) if each.claims_path(spark, source))
    provider, known = _provider_of(spark, source), {each.name: each for each in connectors_of(spark)}
    if provider not in known:
        kind = "a view" if provider == _VIEW else f"a table of {provider!r}"
        msg = f"Cannot prune {source!r}: found {kind}, expected a table of {' or '.join(known)}; name one"
        raise InvalidOptionError(msg)
    return known[provider]


def _named(spark: SparkSession, source: str, format_: str) -> Connector:
    """The connector of a name, unless another one claims the path: a log tells which of its files count."""
    known = {each.name: each for each in connectors_of(spark)}
    found = known.get(format_.lower())
    if found is None:
        msg = f"Cannot read {source!r} as {format_!r}: expected one of {', '.join(known)}"
        raise InvalidOptionError(msg)
    # The last connector claims any path.
    if not is_name(spark, source) and found is connectors_of(spark)[-1]:
        other = claiming(spark, source)
        if other is not found:
            msg = f"Cannot read {source!r} as {found.name!r}: it is a table of {other.name}, leave `format` out"
            raise InvalidOptionError(msg)
    return found


def _provider_of(spark: SparkSession, name: str) -> str:
    try:
        # PySpark writes a long line to standard error where a query names no table.
        if not spark.catalog.tableExists(name):
            raise _no_table(name)
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    except PySparkException as error:
        raise _no_table(name) from error
    providers = [str(row["data_type"]).lower() for row in rows if row["col_name"] == "Provider"]
    # A column of that name comes first.
    return providers[-1] if providers else _VIEW


def _no_table(name: str) -> SourceNotFoundError:
    return SourceNotFoundError(
        f"No table {name!r} in the catalog, and no such path: name a table, or a path that holds a slash"
    )


@dataclass(frozen=True, slots=True, eq=False)
class PlanTable:
    """A table of a plan, and the way back from a DataFrame that reads it to the ids that the plan knows."""

    table: Table
    _fresh: Any
    _leaf: Any

    def files_left(self, spark: SparkSession) -> BoolArray | None:
        """The files that the query's own conditions leave; None if all or not known."""
        return self.table.connector.files_left(spark, self._leaf, self.table)

    def renamed(self, df: DataFrame) -> Any:
        """The JVM's plan of `df` under the ids of the leaf that it stands for."""
        return self._fresh.renamed(analyzed_plan(df))


def table_of(spark: SparkSession, leaf: Any, limits: Limits) -> Table | Reason:
    """The table behind a leaf of a plan."""
    name = _name(leaf)
    try:
        format_ = str(leaf.relation().fileFormat().getClass().getSimpleName())
        connector = _reading(spark, format_)
        if connector is None:
            return Reason(ReasonCode.NOT_FILES, name, format_)
        return connector.table_of(spark, name, leaf, limits)
    except _TROUBLE as error:
        return Reason(ReasonCode.STATISTICS_FAILED, name, one_line(error))


def _reading(spark: SparkSession, format_: str) -> Connector | None:
    """The connector of a file format of Spark."""
    return next((each for each in connectors_of(spark) if format_ in each.file_formats), None)


def fingerprints(
    spark: SparkSession, formats: Sequence[str], leaves: Callable[[tuple[str, ...]], Sequence[Any]]
) -> list[str | Reason]:
    """The fingerprints of leaves of plans, by their connectors: equal only for leaves that read the same rows.

    `formats` has the file format of each leaf; `leaves` gives those of some formats, a list in the JVM.
    """
    found: list[str | Reason] = [no_fingerprint(f"it reads files by {each}") for each in formats]
    reading = {each: _reading(spark, each) for each in formats}
    for connector in connectors_of(spark):
        own = tuple(format_ for format_, each in reading.items() if each is connector)
        places = [at for at, each in enumerate(formats) if each in own]
        if not places:
            continue
        try:
            answers: Sequence[str | Reason | None] = connector.fingerprints(spark, leaves(own))
        except (*_TROUBLE, OSError) as error:
            logger.debug("Fingerprinting scans of %s failed", connector.name, exc_info=True)
            answers = [no_fingerprint(one_line(error))] * len(places)
        unpinned = no_fingerprint(f"the rows of a scan of {connector.name} are not pinned")
        for at, answer in zip(places, answers, strict=True):
            found[at] = answer or unpinned
    return found


def scan_of(spark: SparkSession, leaf: Any, table: Table) -> PlanTable | Reason:
    """A table that `table_of` has opened, for the scan at one leaf."""
    try:
        fresh = fresh_columns(spark, leaf)
        return PlanTable(table.with_frame(frame_of(spark, fresh.leaf())), fresh, leaf)
    except _TROUBLE as error:
        return Reason(ReasonCode.STATISTICS_FAILED, table.name, one_line(error))


def snapshot_calls(spark: SparkSession) -> str:
    """The `Connector.snapshot_calls` of all connectors, with spaces between them."""
    return " ".join(call for each in connectors_of(spark) for call in each.snapshot_calls)


def size_calls(spark: SparkSession) -> str:
    """The `Connector.size_calls` of all connectors, with spaces between them."""
    return " ".join(call for each in connectors_of(spark) for call in each.size_calls)


def versions_by_format(spark: SparkSession) -> dict[str, bool]:
    """Simple class names of the file formats that are claimed, and True for those of tables with versions."""
    found: dict[str, bool] = {}
    for each in reversed(connectors_of(spark)):
        found.update(dict.fromkeys(each.file_formats, each.has_versions))
    return found


def _name(leaf: Any) -> str:
    """The table's name in the catalog, else the last part of its path."""
    catalog = leaf.catalogTable()
    if catalog.isDefined():
        return str(catalog.get().identifier().unquotedString())
    roots = leaf.relation().location().rootPaths()
    return str(roots.head().getName()) if roots.size() else "files"
