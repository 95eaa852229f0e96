"""Keys of a DataFrame that reads little: its rows come to the driver as they are, as long as they are few.

A shuffle and Python workers cost ten times what such a query costs by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from connectors.java_names import java_names
from connectors.kept_files import tell_conditions
from connectors.plan_broadcasts import broadcasts_released
from connectors.spark_files import frame_of
from connectors.storage import has_jvm
from pruning.key_sets import KeyLimits
from pruning.value_type import Physical, ValueType

# A query that reads less may run a second time where its rows turn out to be too many.
_MOST_BYTES_READ = 64 << 20
# Each partition gives at most so many rows, and there are at most so many partitions.
MOST_ROWS, MOST_LONG_ROWS, MOST_PARTITIONS = 100_000, 10_000, 32
_WIDTH, _MOST_LONG_BYTES = 8, 256
_IS_LONG = "__is_long"


def few_rows(
    df: DataFrame, types: Sequence[ValueType], limits: KeyLimits, at_least: int = 0
) -> tuple[DataFrame, pa.Table] | None:
    """All rows of `df` and the DataFrame that ran; None where it reads much or gives more rows than are few.

    It is not run where it is known to have `at_least` so many rows that they are not few.
    """
    most = _most_rows(types, limits)
    if most < 1 or most <= at_least or not has_jvm(df.sparkSession):
        return None
    cut = _limited(_shortened(df, types), most)
    if _bytes_read(cut) > _MOST_BYTES_READ:
        return None
    with broadcasts_released(cut):
        rows = cut.toArrow()
    # A partition that was cut gave all the rows it may.
    if rows.num_rows >= most or pc.any(rows.column(_IS_LONG)).as_py():
        return None
    return cut, rows.drop_columns(_IS_LONG)


def _shortened(df: DataFrame, types: Sequence[ValueType]) -> DataFrame:
    """The keys, without those of many bytes, and beside them whether a row had one."""
    too_long = {
        name: F.coalesce(F.octet_length(F.col(name)) > _MOST_LONG_BYTES, F.lit(False))  # noqa: FBT003
        for name, type_ in zip(df.columns, types, strict=True)
        if type_.physical is Physical.BYTES and type_.name != "decimal"
    }
    kept = [
        F.when(~too_long[name], F.col(name)).alias(name) if name in too_long else F.col(name) for name in df.columns
    ]
    return df.select(*kept, reduce(or_, too_long.values(), F.lit(False)).alias(_IS_LONG))  # noqa: FBT003


def _most_rows(types: Sequence[ValueType], limits: KeyLimits) -> int:
    is_long = any(each.physical is Physical.BYTES for each in types)
    width = (_MOST_LONG_BYTES if is_long else _WIDTH) * len(types)
    return min(MOST_LONG_ROWS if is_long else MOST_ROWS, limits.keys, limits.nbytes // width)


def _limited(df: DataFrame, most: int) -> DataFrame:
    """At most so many rows of each of few partitions, with no exchange as a limit of all of them would need.

    Fewer than `most` rows are all rows of `df`.
    """
    spark = df.sparkSession
    few = df.coalesce(MOST_PARTITIONS)
    jvm = java_names(spark)
    count = jvm.org.apache.spark.sql.catalyst.expressions.Literal(
        most, jvm.org.apache.spark.sql.types.DataTypes.IntegerType
    )
    plan = jvm.org.apache.spark.sql.catalyst.plans.logical.LocalLimit(count, few._jdf.queryExecution().analyzed())  # noqa: SLF001
    return frame_of(spark, plan)


def _bytes_read(df: DataFrame) -> int:
    """What Spark believes that the query reads; scans of kept files learn its conditions before it runs."""
    plan: Any = df._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 - as above
    tell_conditions(df.sparkSession, plan)
    leaves = plan.collectLeaves()
    return sum(int(str(leaves.apply(at).stats().sizeInBytes())) for at in range(leaves.size()))
