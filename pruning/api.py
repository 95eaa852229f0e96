"""The composition root: the one place where decisions meet engines.

keys --collect--> KeySummary --coerce--> KeyFilter --statistics, plan_scan--> ScanPlan --scan--> DataFrame
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pruning.errors import (
    InvalidDataFrameError,
    InvalidKeysError,
    InvalidOptionError,
    NotPrunedReadError,
    SourceNotFoundError,
)
from pruning.keys.cache import PruningCache
from pruning.options import CONF_PREFIX, PruningOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from connectors.spark.session import spark_session as spark_session  # noqa: PLC0414 - `pruning` exports it
    from pruning.results.explanation import Explanation
    from pruning.results.prune_report import PruneReport
else:

    def __getattr__(name: str) -> object:
        """`spark_session`, whose module is loaded when it is asked for."""
        if name == "spark_session":
            from connectors.spark.session import spark_session  # noqa: PLC0415 - importing this package loads no engine

            return spark_session
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)


def pruned_read(  # noqa: PLR0913 - keywords, each with one meaning
    spark: SparkSession,
    source: str | os.PathLike[str] | DataFrame,
    *,
    keys: Mapping[str | tuple[str, ...], Any],
    columns: Sequence[str] | None = None,
    format: str | None = None,  # noqa: A002 - Spark's own word for it
    version: int | None = None,
    timestamp: str | None = None,
    options: PruningOptions | None = None,
    exact: bool = False,
) -> DataFrame:
    """The rows of a table that a join with `keys` needs, without reading files and row groups that hold none.

    The result holds every row whose key columns equal a key, as Spark's `=` sees it, and possibly others: the
    join stays necessary. With `exact=True` it holds no others. So it serves inner and left semi joins by `=`, and
    outer joins that keep the other side; not joins that need rows of this table without a match, or with NULL keys:
    left, full and anti joins that keep it, and `<=>`.

    - `source`: a path or catalog name of a table, or files (one file, a directory or a glob); or a DataFrame or a view
      that is a plain scan of one, at most with some of its columns, which is read as it is: at its version, with the
      options of its reader
    - `keys`: probe column, or tuple of columns, to the key values of the join's other side: a DataFrame with as
      many columns, a sequence, numpy, pandas or Arrow data, or a `KeySummary`. Entries are ANDed. Nested fields
      go by dotted name, names that hold dots in backticks
    - `columns`: what to read, all columns if None
    - `format`: the name of the table format, found out if None
    - `version`, `timestamp`: of a table with versions, the current version if both are None
    - `options`: `PruningOptions`; if None, from the session's confs `spark.pruning.*`

    The table's version is pinned: the DataFrame gives the same rows whenever it is executed, as long as its files
    are there. Keys given as a DataFrame are collected once, before this function returns; whoever joins with that
    DataFrame later pins its tables too. Keys of a query that may give other rows when it runs again (a limit, a
    sample, anything random) prune nothing unless they are cached or checkpointed, or `exact=True` asks for just them.

    Raises a `PruningError` for a user's mistake: `SourceNotFoundError`, `ColumnNotFoundError`,
    `InvalidDataFrameError`, `InvalidKeysError`, `InvalidOptionError`; `EnvironmentProblem` where Spark is not
    installed, or the session lacks the packages of a table's format. Any trouble with pruning itself, and a version of
    Spark that it does not know, gives the unpruned answer, one warning, and a reason in `explain()`.
    """
    _require_spark("read")
    from connectors.pipeline import table_scan as pipeline  # noqa: PLC0415 - importing this package must not load an engine
    from connectors.pipeline.records import attach  # noqa: PLC0415 - importing this package must not load an engine

    given: object = keys
    if not isinstance(given, Mapping) or not given:
        found = "an empty mapping" if isinstance(given, Mapping) else type(given).__name__
        msg = f"Cannot prune by keys given as {found}: expected a mapping of at least one column to its keys"
        raise InvalidKeysError(msg)
    _check(columns, options)
    _check_format(format)
    chosen = options if options is not None else _session_options(spark)
    request = pipeline.ReadRequest(_path(source), dict(keys), columns, format, version, timestamp, chosen, exact)
    return attach(*pipeline.run(spark, request))


def prune(df: DataFrame, *, options: PruningOptions | None = None, cache: PruningCache | None = None) -> DataFrame:
    """A DataFrame with the rows of `df`, whose joins filter the scans of the tables they join.

    The plan of `df` says which side of a join can filter which scan. Sides that read little are run at once, before
    this function returns; everything else of the query stays as it is. Where no filter is worth it, the result is a new
    DataFrame over the plan of `df`, and `explain()` and `report()` of it say why.

    - `df`: any DataFrame of a classic session, from SQL or the DataFrame API
    - `options`: `PruningOptions`; if None, from the session's confs `spark.pruning.*`
    - `cache`: a `PruningCache`, which has the keys of sides that were run with it before; if None, nothing is kept

    The versions of the tables are those that `df` was planned with. Any trouble with pruning gives the unpruned
    answer, one warning, and a reason in `explain()`; so do a version of Spark that it does not know, a stream, which
    `enable()` prunes, and Spark Connect, whose plans are out of reach: name the keys, and use `pruned_read()`. Raises
    `InvalidDataFrameError` for the result of a command, which has run already; `EnvironmentProblem` where Spark is not
    installed.
    """
    _require_spark("prune")
    from connectors.pipeline import pruned_query  # noqa: PLC0415 - importing this package must not load an engine
    from connectors.pipeline.records import attach, log_verdict  # noqa: PLC0415 - the same

    _check_frame(df, "prune")
    _check(None, options)
    _check_cache(cache)
    result, record = pruned_query.prune_query(df, _options(df, options), cache)
    log_verdict(record)
    return attach(result, record)


def enable(spark: SparkSession, *, options: PruningOptions | None = None, cache: PruningCache | None = None) -> None:
    """Prunes every query that this session plans from now on, as `prune()` does, and whoever started it.

    Queries of DataFrames and SQL are pruned when an action or a command plans them: also those that commands run, such
    as `INSERT ... SELECT` and `CREATE TABLE ... AS SELECT`, and the rows that `cache()` keeps. `explain()` of Spark and
    all else that plans without running starts no build; where it comes before an action on the same DataFrame, Spark
    runs the plan that it has, unpruned.

    - `spark`: a classic session; `newSession()` of it is not enabled, sessions that Spark clones from it are
    - `options`: `PruningOptions`; if None, from the session's confs `spark.pruning.*` at each query
    - `cache`: a `PruningCache` for the keys of all queries; if None, nothing is kept

    A second call replaces options and cache. `SET spark.pruning.auto = false` in the session leaves its queries alone
    until it is set to true. Any trouble with pruning gives the unpruned answer and one warning. Raises
    `UnsupportedSessionError` for a session of Spark Connect and where PySpark does not pin its threads;
    `EnvironmentProblem` where Spark is not installed.
    """
    session_pruning = _session_pruning(spark, "enable pruning of a session")
    _check(None, options)
    _check_cache(cache)
    session_pruning.enable(spark, options, cache)


def disable(spark: SparkSession) -> None:
    """Leaves the next query of a session alone, and those of sessions that Spark cloned from it.

    Nothing happens if the session is not enabled. Raises as `enable()` does for anything but a classic session.
    """
    _session_pruning(spark, "disable pruning of a session").disable(spark)


def history(
    spark: SparkSession,
    *,
    table: str | None = None,
    tag: str | None = None,
    job_group: str | None = None,
    execution_id: int | None = None,
) -> list[PruneReport]:
    """The reports of the last 100 queries that a session planned while it was enabled, newest first.

    Queries over files that had nothing to prune are among them, each with the reason. Those that are given leave only
    queries with all of these properties, which `query` of a report has:

    - `table`: a table of files that they read, by its path, or by the last parts of its path or of its name in the
      catalog, as "sales", "shop.sales" and "/lake/sales"; views have no name here
    - `tag`: set by `spark.addTag()` or `addJobTag()` of its context when the query was planned
    - `job_group`: set by `setJobGroup()`; of a stream the `runId`
    - `execution_id`: that in Spark's SQL tab, of the query or of the command that ran it: a MERGE runs several

    Raises as `enable()` does for anything but a classic session, `InvalidOptionError` for properties of other types.
    """
    session_pruning = _session_pruning(spark, "tell the history of a session")
    for name, value in (("table", table), ("tag", tag), ("job_group", job_group)):
        _check_wanted(name, value, is_known=isinstance(value, str) and bool(value), expected="a text that is not empty")
    given: object = execution_id
    is_number = isinstance(given, int) and not isinstance(given, bool)
    _check_wanted("execution_id", given, is_known=is_number, expected="an integer")
    wanted = session_pruning.Wanted(table, tag, job_group, execution_id)
    reports: list[PruneReport] = session_pruning.history(spark, wanted)
    return reports


def _check_wanted(name: str, value: object, *, is_known: bool, expected: str) -> None:
    if value is not None and not is_known:
        raise InvalidOptionError(f"Cannot look for queries by {name!r} {value!r}: expected {expected}")


def _session_pruning(spark: object, asked: str) -> Any:
    """The module that prunes sessions, for a classic session."""
    _require_spark(asked)
    from connectors.session import session_pruning  # noqa: PLC0415 - importing this package must not load an engine

    session_pruning.check_session(spark, asked)
    return session_pruning


def _path(source: object) -> str | DataFrame:
    """The text of a path or of a name in the catalog, or a DataFrame; `SourceNotFoundError` for anything else."""
    from pyspark.sql import DataFrame as AnyDataFrame  # noqa: PLC0415 - importing this package must not load an engine

    if isinstance(source, AnyDataFrame):
        return source
    if isinstance(source, str | os.PathLike):
        path: object = os.fspath(source)
        if isinstance(path, str) and path:
            return path
    found = "an empty text" if source == "" else f"{source!r}, a {type(source).__name__}"
    msg = f"Cannot read {found}: expected the path of a table, its name in the catalog, or a DataFrame that scans it"
    raise SourceNotFoundError(msg)


def _check_format(format_: object) -> None:
    if format_ is not None and not (isinstance(format_, str) and format_):
        found = "an empty name" if isinstance(format_, str) else type(format_).__name__
        expected = "the name of a table format, or None to find it"
        msg = f"Cannot read the format {format_!r}: expected {expected}, found {found}"
        raise InvalidOptionError(msg)


def _require_spark(asked: str) -> None:
    from connectors.spark.versions import require_spark  # noqa: PLC0415 - importing this package must not load an engine

    require_spark(asked)


def _options(df: DataFrame, options: PruningOptions | None) -> PruningOptions:
    return options if options is not None else _session_options(df.sparkSession)


def _session_options(spark: SparkSession) -> PruningOptions:
    from connectors.spark.session import option_confs  # noqa: PLC0415 - importing this package must not load an engine

    return PruningOptions.from_confs(option_confs(spark, CONF_PREFIX))


def _check(columns: object, options: object) -> None:
    """Raises for arguments of a type that would only fail somewhere below, in words that are not the caller's."""
    is_list = isinstance(columns, Sequence) and not isinstance(columns, str | bytes)
    if columns is not None and not (is_list and all(isinstance(each, str) for each in columns)):  # type: ignore[attr-defined]
        msg = f"Cannot read the columns {columns!r}: expected a list of column names, or None for all"
        raise InvalidOptionError(msg)
    if options is not None and not isinstance(options, PruningOptions):
        msg = f"Cannot use the options {options!r}: expected a PruningOptions, found a {type(options).__name__}"
        raise InvalidOptionError(msg)


def _check_cache(cache: object) -> None:
    if cache is not None and not isinstance(cache, PruningCache):
        msg = f"Cannot use the cache {cache!r}: expected a PruningCache, found a {type(cache).__name__}"
        raise InvalidOptionError(msg)


def explain(df: DataFrame, *, run_builds: bool = False, options: PruningOptions | None = None) -> Explanation:
    """The plan for `df`, from metadata alone: no data is read, unless `run_builds` asks for it.

    For a DataFrame that `pruned_read()` or `prune()` returned, its plan: its builds ran, with the options it was given,
    so neither argument changes anything. For any other, what `prune()` would do with it.

    - `run_builds`: True runs the builds, as `prune()` does, but not the query: what each filter keeps is exact. False
      runs nothing: what it gives of keys is what the metadata of the build sides tells
    - `options`: `PruningOptions`; if None, from the session's confs `spark.pruning.*`

    Any trouble with pruning is a reason in the explanation. Raises `InvalidDataFrameError` for what is no DataFrame of
    a query, `InvalidOptionError` for arguments of other types.
    """
    _check_switch("run_builds", run_builds)
    _check(None, options)
    record = _found(df)
    if record is None:
        _require_spark("explain")
        _check_frame(df, "explain")
        return _explained(df, _options(df, options), run_builds=run_builds)
    explanation: Explanation = record.explanation()
    return explanation


def _explained(df: DataFrame, options: PruningOptions, *, run_builds: bool) -> Explanation:
    """The plan that `prune()` would make."""
    if run_builds:
        from connectors.pipeline.pruned_query import prune_query  # noqa: PLC0415 - importing this package loads no engine

        _, record = prune_query(df, options)
        return record.explanation()
    from connectors.pipeline.explained_query import explain_query  # noqa: PLC0415 - the same

    return explain_query(df, options)


def report(df: DataFrame) -> PruneReport:
    """The plan for `df` beside the measurements of the latest action on it or on a DataFrame made from it.

    `NotPrunedReadError` for a DataFrame that neither `prune()` nor `pruned_read()` returned.
    """
    prune_report: PruneReport = _record(df, "report").report()
    return prune_report


def _check_switch(name: str, value: object) -> None:
    if not isinstance(value, bool):
        msg = f"Cannot set {name!r} to {value!r}: expected True or False"
        raise InvalidOptionError(msg)


def _check_frame(df: object, asked: str) -> None:
    from pyspark.sql import DataFrame as AnyDataFrame  # noqa: PLC0415 - importing this package must not load an engine

    if not isinstance(df, AnyDataFrame):
        msg = f"Cannot {asked} {df!r}: expected a DataFrame, found {type(df).__name__}"
        raise InvalidDataFrameError(msg)


def _found(df: object) -> Any:
    """The record of a DataFrame that was pruned; None for anything else."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import DataFrame as AnyDataFrame  # noqa: PLC0415 - importing this package must not load an engine

    from connectors.pipeline.records import record_of  # noqa: PLC0415 - the same

    return record_of(df) if isinstance(df, AnyDataFrame) else None


def _record(df: DataFrame, asked: str) -> Any:
    record = _found(df)
    if record is None:
        msg = f"Cannot {asked} a DataFrame that prune() or pruned_read() did not return: pass the one it returned"
        raise NotPrunedReadError(msg)
    return record
