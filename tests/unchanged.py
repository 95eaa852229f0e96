"""Recognition of a query that `prune()` has left as it was."""

from __future__ import annotations

from pyspark.sql import DataFrame


def is_unchanged(df: DataFrame, result: DataFrame) -> bool:
    """True if a DataFrame has the very plan of another one; how it was optimised may differ."""
    before, after = (each._jdf.queryExecution().analyzed() for each in (df, result))
    return df._jdf is result._jdf or bool(before.equals(after))
