"""Keys of a DataFrame that reads little: its rows come to the driver as they are, as long as they are few.

A shuffle and Python workers cost ten times what such a query costs by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from connectors.storage import has_jvm
from pruning.key_sets import KeyLimits
from pruning.value_type import Physical, ValueType

# A query that reads less may run a second time where its rows turn out to be too many.
_MOST_BYTES_READ = 64 << 20
# Each partition gives at most so many rows, and there are at most so many partitions.
_MOST_ROWS, _MOST_LONG_ROWS, _MOST_PARTITIONS = 100_000, 10_000, 32
_WIDTH = 8


def few_rows(df: DataFrame, types: Sequence[ValueType], limits: KeyLimits) -> tuple[DataFrame, pa.Table] | None:
    """All rows of `df` and the DataFrame that ran; None where it reads much or gives more rows than are few."""
    most = _most_rows(types, limits)
    if most < 1 or not has_jvm(df.sparkSession):
        return None
    cut = _cut(df.coalesce(_MOST_PARTITIONS), most)
    if _bytes_read(cut) > _MOST_BYTES_READ:
        return None
    rows = cut.toArrow()
    # A partition that was cut gave all the rows it may.
    return (cut, rows) if rows.num_rows < most else None


def _most_rows(types: Sequence[ValueType], limits: KeyLimits) -> int:
    is_long = any(each.physical is Physical.BYTES for each in types)
    return min(_MOST_LONG_ROWS if is_long else _MOST_ROWS, limits.keys, limits.nbytes // (_WIDTH * len(types)))


def _cut(df: DataFrame, most: int) -> DataFrame:
    """The first rows of each partition, with no exchange as a limit of all of them would need."""
    spark = df.sparkSession
    jvm: Any = spark._jvm  # noqa: SLF001 - plans have no public door
    count = jvm.org.apache.spark.sql.catalyst.expressions.Literal(
        most, jvm.org.apache.spark.sql.types.DataTypes.IntegerType
    )
    plan = jvm.org.apache.spark.sql.catalyst.plans.logical.LocalLimit(count, df._jdf.queryExecution().analyzed())  # noqa: SLF001
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)  # noqa: SLF001


def _bytes_read(df: DataFrame) -> int:
    """What Spark believes that the query reads."""
    leaves: Any = df._jdf.queryExecution().optimizedPlan().collectLeaves()  # noqa: SLF001 - as above
    return sum(int(str(leaves.apply(at).stats().sizeInBytes())) for at in range(leaves.size()))
