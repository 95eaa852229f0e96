"""A bloom filter as a condition on a DataFrame, tested inside the JVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from connectors.java_names import java_names
from connectors.storage import has_jvm
from pruning.errors import UnsupportedSessionError
from pruning.hashing import SPARK_SEED

_SCHEMA = "bloom binary"


def might_contain_column(df: DataFrame, columns: Sequence[str], bloom_bytes: bytes) -> Column:
    """True for rows of `df` whose `columns`, SQL expressions of it, hash to something in the filter; never NULL.

    `bloom_bytes` is `BloomFilter.to_bytes()` of Spark's `xxhash64` of keys in the very types of the expressions: a
    filter of ints loses every bigint. NULL is hashed too, so a row with a NULL key is dropped unless keys held one.
    Raises `UnsupportedSessionError` on Spark Connect, whose protocol has no such expression.
    """
    spark = df.sparkSession
    if not has_jvm(spark):
        raise UnsupportedSessionError(
            "Cannot test rows by a bloom filter on Spark Connect: found no JVM plan, use a classic session"
        )
    jvm = java_names(spark)
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    # By class, as SQL has no name for the one, and a session may give the other's name to another function.
    utils = getattr(getattr(jvm.org.apache.spark.sql.classic, "ExpressionUtils$"), "MODULE$")
    keys = jvm.PythonUtils.toSeq([utils.expression(F.expr(each)._jc) for each in columns])  # noqa: SLF001
    bloom = utils.expression(_scalar(spark, jvm, bloom_bytes))
    hashed = expressions.XxHash64(keys, SPARK_SEED)
    return Column(utils.column(expressions.BloomFilterMightContain(bloom, hashed)))


def _scalar(spark: SparkSession, jvm: Any, value: bytes) -> Any:
    """A scalar subquery of one local row: a literal would be spelled out in every text of the plan."""
    fields = spark.sparkContext._gateway.new_array(jvm.java.lang.Object, 1)  # type: ignore[union-attr]  # noqa: SLF001
    fields[0] = value
    rows = jvm.java.util.List.of(jvm.org.apache.spark.sql.RowFactory.create(fields))
    schema = jvm.org.apache.spark.sql.types.StructType.fromDDL(_SCHEMA)
    return spark._jsparkSession.createDataFrame(rows, schema).scalar()  # noqa: SLF001
