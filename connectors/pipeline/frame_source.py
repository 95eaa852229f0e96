"""The table behind a DataFrame or a view that is a plain scan of one, as a source of `pruned_read()`."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from connectors.base import Table
from connectors.registry import scan_of, table_of
from connectors.spark.jvm import has_jvm, optimized_plan
from connectors.spark.plan_reader import check_is_query
from connectors.spark.versions import version_refusal
from pruning.errors import InvalidDataFrameError
from pruning.limits import Limits
from pruning.reasons import Reason

_EXPECTED = "expected a plain scan of one table, at most with some of its columns"
_REMEDY = "pass the table itself, and filter or rename the result, or use prune()"


def table_of_frame(spark: SparkSession, df: DataFrame, name: str, limits: Limits) -> tuple[Table, list[str]]:
    """The table that a DataFrame scans, at the version and with the files that it reads, and the columns it has.

    The relation of the DataFrame itself is read, with the options and the schema of its reader. Its optimised plan is
    looked at, so it reads the same version whenever it runs. `InvalidDataFrameError` for anything but a plain scan: a
    renamed column, too, since statistics have the names of the table.
    """
    if not has_jvm(spark):
        raise _refused(name, "a session of Spark Connect, whose plans are out of reach")
    check_is_query(df)
    if (refusal := version_refusal(spark)) is not None:
        raise _refused(name, str(refusal))
    if df.isStreaming:
        raise _refused(name, "a stream")
    plan = optimized_plan(df)
    leaf = _leaf(plan, name)
    table = table_of(spark, leaf, limits)
    scan = table if isinstance(table, Reason) else scan_of(spark, leaf, table)
    if isinstance(scan, Reason):
        raise _refused(name, str(scan))
    known = {str(each.name) for each in scan.table.schema.fields}
    if other := next((each for each in df.columns if each not in known), None):
        raise _refused(name, f"the column {other!r}, which the table has under another name")
    return scan.table, df.columns


def _leaf(plan: Any, name: str) -> Any:
    """The only leaf of a plan, below at most a projection of its columns under their names."""
    if plan.nodeName() == "Project":
        columns = plan.projectList()
        for at in range(columns.size()):
            _check_column(columns.apply(at), name)
        plan = plan.child()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        raise _refused(name, f"the operator {plan.nodeName()}")
    return plan


def _check_column(column: Any, name: str) -> None:
    kind = str(column.getClass().getSimpleName())
    source = column.child() if kind == "Alias" else column
    if source.getClass().getSimpleName() != "AttributeReference":
        raise _refused(name, f"the computed column {str(column.name())!r}")
    if source.name() != column.name():
        raise _refused(name, f"the column {str(source.name())!r} under the name {str(column.name())!r}")


def _refused(name: str, found: str) -> InvalidDataFrameError:
    return InvalidDataFrameError(f"Cannot read {name} by keys: found {found}, {_EXPECTED}; {_REMEDY}")
