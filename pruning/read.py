"""The composition root: the one place where decisions meet engines.

keys --collect--> KeySummary --coerce--> KeyFilter --statistics, plan_scan--> ScanPlan --scan--> DataFrame
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pruning.errors import InvalidKeysError, InvalidOptionError, NotPrunedReadError
from pruning.options import PruningOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pruning.explanation import Explanation
    from pruning.prune_report import PruneReport

_RECORD = "_scanprune_read"


def pruned_read(  # noqa: PLR0913 - keywords, each with one meaning
    spark: SparkSession,
    source: str | os.PathLike[str],
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
    join stays necessary. With `exact=True` it holds no others.

    - `source`: a path or catalog name of a Delta table, or of Parquet files (a file, directory or glob)
    - `keys`: probe column, or tuple of columns, to the key values of the join's other side: a DataFrame with as
      many columns, a sequence, numpy, pandas or Arrow data, or a `KeySummary`. Entries are ANDed. Nested fields
      go by dotted name, names that hold dots in backticks
    - `columns`: what to read, all columns if None
    - `format`: `delta` or `parquet`, found out if None
    - `version`, `timestamp`: of a Delta table, the current version if both are None
    - `options`: `PruningOptions`; if None, from the session's confs `spark.pruning.*`

    The table's version is pinned: the DataFrame gives the same rows whenever it is executed. Keys given as a
    DataFrame are collected once, before this function returns; whoever joins with that DataFrame later pins its
    tables too.

    Raises a `PruningError` for a user's mistake: `SourceNotFoundError`, `ColumnNotFoundError`,
    `InvalidKeysError`, `InvalidOptionError`. Any trouble with pruning itself gives the unpruned answer, one
    warning, and a reason in `explain()`.
    """
    from connectors import pipeline  # noqa: PLC0415 - importing this package must not load an engine

    given: object = keys
    if not isinstance(given, Mapping) or not given:
        found = "an empty mapping" if isinstance(given, Mapping) else type(given).__name__
        msg = f"Cannot prune by keys given as {found}: expected a mapping of at least one column to its keys"
        raise InvalidKeysError(msg)
    _check(columns, options)
    chosen = options if options is not None else PruningOptions.from_confs(spark.conf.getAll)
    request = pipeline.Request(os.fspath(source), dict(keys), columns, format, version, timestamp, chosen, exact)
    df, record = pipeline.run(spark, request)
    setattr(df, _RECORD, record)
    return df


def _check(columns: object, options: object) -> None:
    """Raises for arguments of a type that would only fail somewhere below, in words that are not the caller's."""
    is_list = isinstance(columns, Sequence) and not isinstance(columns, str | bytes)
    if columns is not None and not (is_list and all(isinstance(each, str) for each in columns)):  # type: ignore[attr-defined]
        msg = f"Cannot read the columns {columns!r}: expected a list of column names, or None for all"
        raise InvalidOptionError(msg)
    if options is not None and not isinstance(options, PruningOptions):
        msg = f"Cannot use the options {options!r}: expected a PruningOptions, found a {type(options).__name__}"
        raise InvalidOptionError(msg)


def explain(df: DataFrame) -> Explanation:
    """What is planned for `df`, from metadata alone: no data is read.

    `NotPrunedReadError` for a DataFrame that `pruned_read()` did not return.
    """
    explanation: Explanation = _record(df, "explain").explanation()
    return explanation


def report(df: DataFrame) -> PruneReport:
    """What was planned for `df`, and what the latest action on it, or on a DataFrame made from it, measured.

    `NotPrunedReadError` for a DataFrame that `pruned_read()` did not return.
    """
    prune_report: PruneReport = _record(df, "report").report()
    return prune_report


def _record(df: DataFrame, asked: str) -> Any:
    record = getattr(df, _RECORD, None)
    if record is None:
        msg = f"Cannot {asked} a DataFrame that pruned_read() did not return: pass the very one it returned"
        raise NotPrunedReadError(msg)
    return record
