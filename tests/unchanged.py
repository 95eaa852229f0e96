"""Recognition of a query that pruning has left as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def is_unchanged(df: DataFrame, result: DataFrame) -> bool:
    """True if a DataFrame has the very plan of another one; how it was optimised may differ.

    In another session, which leaves the analysed plan alone, it is the optimised plan that must be equal; the result
    has been planned by an action.
    """
    if df._jdf is result._jdf:
        return True
    if result.sparkSession is df.sparkSession:
        return bool(_execution(df).analyzed().equals(_execution(result).analyzed()))
    before, after = (_execution(each).optimizedPlan().canonicalized() for each in (df, result))
    return bool(before.equals(after))


def _execution(df: DataFrame) -> Any:
    jvm: Any = df._jdf
    return jvm.queryExecution()
