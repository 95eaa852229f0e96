"""The connectors of a session, and the tables that they claim: by path, by catalog name, or as a leaf of a plan.

Delta and Parquet are built in. A package adds a connector by an entry point of the group `scanprune.connectors`, and a
session by `register()`; both are asked before those that are built in. The first of two connectors of one name is
asked. A connector that cannot be loaded, or whose method raises, costs one warning; the others are asked as if it knew
no answer.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, distributions
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from connectors.base import CommandScan, Connector, ScannedVersion, Table
from connectors.spark.files import is_name
from connectors.spark.jvm import analyzed_plan, error_kind, frame_of, optimized_plan
from connectors.spark.plan_facts import leaf_name, no_fingerprint
from connectors.spark.plan_reader import with_columns_of_leaf
from connectors.spark.session_state import state_of
from pruning.errors import InvalidOptionError, PruningError, SourceNotFoundError
from pruning.limits import Limits
from pruning.reasons import Reason, ReasonCode
from pruning.values.ranges import BoolArray

logger = logging.getLogger("scanprune")

_ENTRY_POINTS = "scanprune.connectors"
# Loaded by name, since their packages stand above this module. The last one claims any path.
_BUILT_IN = (("connectors.delta.table", "DELTA"), ("connectors.parquet.table", "PARQUET"))
_VIEW = "view"
_TROUBLE = (Py4JError, PySparkException, ValueError, TypeError, LookupError)


class ViewFoundError(InvalidOptionError):
    """A name is that of a view, which may be a plain scan of a table."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Cannot prune {name!r}: found a view, expected a table; leave out format, version and timestamp"
        )


# Attributes that a connector has to set.
_NEEDED = ("name", "file_formats", "skipping_conf", "vectorised_confs")


@dataclass(slots=True)
class _Registered:
    """The connectors that a session was given, and the names of those whose trouble was logged."""

    connectors: list[Connector] = field(default_factory=list)
    warned: set[str] = field(default_factory=set)


def register(spark: SparkSession, connector: Connector) -> None:
    """Adds a connector to a session, before all others; one of the same name is replaced.

    `InvalidOptionError` for anything but an object of a class that extends `Connector`.
    """
    if (problem := _problem(connector)) is not None:
        msg = f"Cannot register {connector!r} as a connector: {problem}"
        raise InvalidOptionError(msg)
    registered = state_of(spark).slot(_Registered)
    registered.connectors = [connector, *(each for each in registered.connectors if each.name != connector.name)]


def connectors_of(spark: SparkSession) -> tuple[Connector, ...]:
    """The connectors of a session, in the order in which they are asked, each with a name of its own."""
    found: dict[str, Connector] = {}
    for each in (*state_of(spark).slot(_Registered).connectors, *_installed()):
        found.setdefault(each.name, each)
    return tuple(found.values())


@cache
def _installed() -> tuple[Connector, ...]:
    others: dict[str, Connector] = {}
    for entry in _entry_points():
        found = _loaded(entry)
        if found is not None and others.setdefault(found.name, found) is not found:
            why = f"another package has a connector of the name {found.name!r}, which is asked; uninstall one of them"
            logger.warning("Leaving out the connector %s: %s", entry.value, why)
    return (*others.values(), *(getattr(import_module(module), name) for module, name in _BUILT_IN))


def _entry_points() -> Iterator[EntryPoint]:
    # PySpark adds the jars of a session to the path; to list these archives takes half a second.
    folders = [each for each in sys.path if not each.endswith(".jar")]
    for each in distributions(path=folders):
        yield from each.entry_points.select(group=_ENTRY_POINTS)


def _loaded(entry: EntryPoint) -> Connector | None:
    """The connector of an entry point; None, after a warning, if there is none."""
    try:
        found: Any = entry.load()
        problem = _problem(found)
    except Exception as error:
        logger.debug("Loading the connector %s failed", entry.value, exc_info=True)
        found, problem = None, f"loading it failed ({error_kind(error)})"
    if problem is not None:
        remedy = "tables are read as without it; update or uninstall the package that adds it"
        logger.warning("Leaving out the connector %s: %s; %s", entry.value, problem, remedy)
        return None
    connector: Connector = found
    return connector


def _problem(connector: object) -> str | None:
    """The reason why an object cannot be a connector."""
    if not isinstance(connector, Connector):
        found = f"the class {connector.__name__}" if isinstance(connector, type) else type(connector).__name__
        return f"expected an object whose class extends connectors.base.Connector, found {found}"
    missing = [each for each in _NEEDED if not hasattr(connector, each)]
    return f"expected the attributes {', '.join(_NEEDED)}, found no {', '.join(missing)}" if missing else None


def _nothing(_: Exception) -> None:
    """No answer, as of a connector that does not know."""


def _claiming_path(spark: SparkSession, path: str, known: Mapping[str, Connector]) -> Connector:
    """The first connector that claims a path. The last one claims any, so it is asked only if all others answer."""
    failed: list[str] = []
    for name, each in known.items():
        if failed and each is connectors_of(spark)[-1]:
            break
        claims = _ask(each, spark, Connector.claims_path, spark, path)
        if claims:
            return each
        failed += [name] if claims is None else []
    if failed:
        found = f"the connector {failed[0]!r} failed to tell if the path holds a table of it"
        msg = f"Cannot prune {path!r}: {found}; name the format, as in format={failed[0]!r}"
        raise SourceNotFoundError(msg)
    msg = f"Cannot prune {path!r}: no connector claims the path, expected a table of {' or '.join(known)}"
    raise SourceNotFoundError(msg)


def _ask(
    connector: Connector,
    spark: SparkSession,
    method: Callable[..., Any],
    *arguments: Any,
    failed: Callable[[Exception], Any] = _nothing,
) -> Any:
    """The answer of a connector to a method of `Connector`; that of `failed`, after one warning, if it raises."""
    name = method.__name__
    try:
        return getattr(connector, name)(*arguments)
    except PruningError:
        # A user's mistake, in words for the user.
        raise
    except Exception as error:
        logger.debug("%s() of the connector %r failed", name, connector.name, exc_info=True)
        warned = state_of(spark).slot(_Registered).warned
        if connector.name not in warned:
            warned.add(connector.name)
            known = f"{connector.name!r} of {type(connector).__module__}"
            remedy = "its tables may be read unpruned"
            if not type(connector).__module__.startswith("connectors."):
                remedy += "; update or remove the package that adds it"
            logger.warning("The connector %s is broken: %s() failed (%s); %s", known, name, error_kind(error), remedy)
        return failed(error)


def plan_early(spark: SparkSession) -> None:
    """Tells all connectors of a session that is enabled."""
    for each in connectors_of(spark):
        _ask(each, spark, Connector.plan_early, spark)


def optimized(df: DataFrame) -> Any:
    """The optimised plan of a query in the JVM."""
    return early_query(df)[1]


def early_query(df: DataFrame) -> tuple[DataFrame, Any]:
    """A query with the rows of `df`, by the first connector that lets Spark plan it faster, and its optimised plan.

    A query of a connector is planned once more when it runs, and reads what is newest then.
    """
    for each in connectors_of(df.sparkSession):
        early: DataFrame | None = _ask(each, df.sparkSession, Connector.early_query, df)
        if early is not None:
            return early, optimized_plan(frame_of(df.sparkSession, analyzed_plan(early)))
    return df, optimized_plan(df)


def before_execution(spark: SparkSession, plan: Any) -> None:
    """Tells all connectors of an optimised plan that is about to run."""
    for each in connectors_of(spark):
        _ask(each, spark, Connector.before_execution, spark, plan)


def scanned_version(spark: SparkSession, index: Any) -> ScannedVersion | None:
    """The version that a file index of an executed plan read; None for tables without versions."""
    asked = (_ask(each, spark, Connector.scanned_version, index) for each in connectors_of(spark))
    return next(filter(None, asked), None)


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
    known = {each.name: each for each in connectors_of(spark)}
    if not is_name(spark, source):
        return _claiming_path(spark, source, known)
    provider = _provider_of(spark, source)
    if provider not in known:
        if provider == _VIEW:
            raise ViewFoundError(source)
        kind = f"a table of {provider!r}"
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
    # The last built-in connector claims any path.
    if not is_name(spark, source) and found is _installed()[-1]:
        try:
            other = claiming(spark, source)
        except SourceNotFoundError:
            # A connector that cannot tell is overruled by a format that the caller names.
            return found
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
    """A table of a plan, at the leaf that reads it."""

    table: Table
    _leaf: Any

    def files_left(self, spark: SparkSession) -> BoolArray | None:
        """The files that the query's own conditions leave; None if all or not known."""
        left: BoolArray | None = _ask(self.table.connector, spark, Connector.files_left, spark, self._leaf, self.table)
        return left

    def plan_of(self, df: DataFrame) -> Any:
        """The JVM's plan of `df` with the columns of the leaf that it stands for."""
        return with_columns_of_leaf(df.sparkSession, analyzed_plan(df), self._leaf)


def table_of(spark: SparkSession, leaf: Any, limits: Limits) -> Table | Reason:
    """The table behind a leaf of a plan, by the first connector of its file format that knows it."""
    found = leaf_name(spark, leaf)
    if found is None:
        # A relation without files, such as the change feed of a table.
        return Reason(ReasonCode.NOT_FILES, "a scan", str(leaf.nodeName()))
    name, format_ = found
    failures: list[Reason] = []
    for each in _reading(spark, format_):
        table: Table | Reason | None = _ask(
            each,
            spark,
            Connector.table_of,
            *(spark, name, leaf, limits),
            failed=lambda error: failures.append(Reason(ReasonCode.STATISTICS_FAILED, name, error_kind(error))),
        )
        if table is not None:
            return table
    return failures[0] if failures else Reason(ReasonCode.NOT_FILES, name, format_)


def _reading(spark: SparkSession, format_: str) -> list[Connector]:
    """The connectors of a file format of Spark."""
    return [each for each in connectors_of(spark) if format_ in each.file_formats]


def fingerprints(
    spark: SparkSession, formats: Sequence[str], leaves: Callable[[tuple[str, ...]], Sequence[Any]]
) -> list[str | Reason]:
    """The fingerprints of leaves of plans, by their connectors: equal only for leaves that read the same rows.

    `formats` has the file format of each leaf; `leaves` gives those of some formats, a list in the JVM. Connectors of
    one file format are asked in turn until one answers.
    """
    found: list[str | Reason | None] = [None] * len(formats)
    for connector in connectors_of(spark):
        places = [at for at, each in enumerate(formats) if each in connector.file_formats]
        if all(found[at] is not None for at in places):
            continue
        own = tuple(dict.fromkeys(formats[at] for at in places))
        answers = _ask(connector, spark, Connector.fingerprints, spark, leaves(own), failed=lambda error: error)
        if not isinstance(answers, Exception) and len(answers) != len(places):
            answers = ValueError()
        if isinstance(answers, Exception):
            answers = [no_fingerprint(error_kind(answers))] * len(places)
        for at, answer in zip(places, answers, strict=True):
            # None passes the leaf on; a fingerprint or a refusal is final.
            if found[at] is None and isinstance(answer, str | Reason):
                found[at] = answer or None
    readers = {each: _reading(spark, each) for each in formats}
    unknown = {
        format_: f"the rows of a scan of {those[0].name} are not pinned" if those else f"it reads files by {format_}"
        for format_, those in readers.items()
    }
    return [answer or no_fingerprint(unknown[each]) for each, answer in zip(formats, found, strict=True)]


def scan_of(spark: SparkSession, leaf: Any, table: Table) -> PlanTable | Reason:
    """A table that `table_of` has opened, for the scan at one leaf."""
    try:
        return PlanTable(table.with_frame(frame_of(spark, leaf)), leaf)
    except _TROUBLE as error:
        return Reason(ReasonCode.STATISTICS_FAILED, table.name, error_kind(error))


def pinned_plan(spark: SparkSession, plan: Any) -> Any:
    """An optimised plan whose scans are pinned by their formats, where these have not done so."""
    for each in connectors_of(spark):
        plan = _ask(each, spark, Connector.pinned_plan, spark, plan) or plan
    return plan


def command_scan(spark: SparkSession, plan: Any) -> CommandScan | Reason | None:
    """The scan of a command whose files may be left out, by the first connector that knows the command."""
    for each in connectors_of(spark):
        found: CommandScan | Reason | None = _ask(each, spark, Connector.command_scan, spark, plan)
        if found is not None:
            return found
    return None
