"""A bloom filter as a condition on a DataFrame, tested inside the JVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from connectors.jvm import jvm_name
from connectors.storage import has_jvm
from pruning.errors import UnsupportedSessionError
from pruning.hashing import SPARK_SEED

_SCHEMA = "bloom binary"
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"


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
    # By class, as SQL has no name for the one, and a session may give the other's name to another function.
    utils = jvm_name(spark, "org.apache.spark.sql.classic.ExpressionUtils$.MODULE$")
    to_seq = jvm_name(spark, "org.apache.spark.api.python.PythonUtils.toSeq")
    keys = to_seq([utils.expression(F.expr(each)._jc) for each in columns])  # noqa: SLF001 - no other way to a node
    bloom = utils.expression(_scalar(spark, bloom_bytes))
    hashed = jvm_name(spark, f"{_EXPRESSIONS}.XxHash64")(keys, SPARK_SEED)
    return Column(utils.column(jvm_name(spark, f"{_EXPRESSIONS}.BloomFilterMightContain")(bloom, hashed)))


def _scalar(spark: SparkSession, value: bytes) -> Any:
    """A scalar subquery of one local row: a literal would be spelled out in every text of the plan."""
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - as PySpark makes its arrays
    fields = gateway.new_array(jvm_name(spark, "java.lang.Object"), 1)
    fields[0] = value
    rows = jvm_name(spark, "java.util.List.of")(jvm_name(spark, "org.apache.spark.sql.RowFactory.create")(fields))
    schema = jvm_name(spark, "org.apache.spark.sql.types.StructType.fromDDL")(_SCHEMA)
    return spark._jsparkSession.createDataFrame(rows, schema).scalar()  # noqa: SLF001
