"""Builds whose rows come to the driver's JVM, to be joined as they are: the query does not run them a second time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType, VariantType

from connectors.compiled import instance
from connectors.few_keys import MOST_LONG_ROWS, MOST_ROWS, bytes_read, limited
from connectors.local_keys import built
from connectors.long_text import long_bytes
from connectors.plan_broadcasts import broadcasts_released
from connectors.spark_files import frame_of
from connectors.spark_keys import key_types
from pruning.key_sets import KeyLimits
from pruning.key_summary import KeySummary
from pruning.options import PruningOptions
from pruning.reasons import Reason
from pruning.value_type import ValueType

# Rows stay in Spark's own form from the scan to the join: no value is converted.
_ROWS = "LocalRows"
_ROWS_SOURCE = """
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.arrow.ArrowBatchStreamWriter;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

public class LocalRows extends scala.runtime.AbstractFunction0 {
    private final QueryExecution execution;
    private java.util.List rows;

    public LocalRows(QueryExecution execution) {
        this.execution = execution;
    }

    public Object apply() {
        return execution.executedPlan().executeCollect();
    }

    public int collect(String name) {
        Object found = SQLExecution.withNewExecutionId(execution, scala.Option.apply(name), this);
        rows = java.util.Arrays.asList((Object[]) found);
        return rows.size();
    }

    public long bytes() {
        long sum = 0;
        for (int at = 0; at < rows.size(); at++) {
            sum += ((UnsafeRow) rows.get(at)).getSizeInBytes();
        }
        return sum;
    }

    public String type(Attribute key) {
        return schema(key).json();
    }

    public java.io.ByteArrayOutputStream values(int at, Attribute key) {
        java.util.ArrayList values = new java.util.ArrayList(rows.size());
        for (int row = 0; row < rows.size(); row++) {
            Object value = ((UnsafeRow) rows.get(row)).get(at, key.dataType());
            values.add(new GenericInternalRow(new Object[] {value}));
        }
        java.io.ByteArrayOutputStream stream = new java.io.ByteArrayOutputStream();
        ArrowBatchStreamWriter writer = new ArrowBatchStreamWriter(schema(key), stream, "UTC", true, false);
        scala.collection.Iterator all = scala.jdk.javaapi.CollectionConverters.asScala(values.iterator());
        writer.writeBatches(
            ArrowConverters$.MODULE$.toBatchIterator(all, schema(key), -1L, "UTC", true, false, null));
        writer.end();
        return stream;
    }

    private static StructType schema(Attribute key) {
        return new StructType(new StructField[] {new StructField("key", key.dataType(), true, key.metadata())});
    }

    public LogicalPlan insteadOf(LogicalPlan plan) {
        return new LocalRelation(plan.output(), scala.jdk.javaapi.CollectionConverters.asScala(rows).toSeq(), false,
            scala.Option.empty());
    }
}
"""
_MOST_BYTES_READ = 16 << 20
_LONG = (StringType, BinaryType, ArrayType, MapType, StructType, VariantType)


@dataclass(frozen=True, slots=True, eq=False)
class LocalRows:
    """All rows of a plan, held by the driver's JVM; `nbytes` is what they take in Spark's own form."""

    count: int
    nbytes: int
    _rows: Any
    _spark: SparkSession
    _keys: dict[int, KeySummary | Reason] = field(default_factory=dict)

    def keys(self, at: int, column: Any, options: PruningOptions, name: str) -> KeySummary | Reason:
        """The summary of the values at one place of all rows; `column` is the attribute of it. No job is run."""
        if at not in self._keys:
            types = key_types(StructType.fromJson(json.loads(self._rows.type(column))), name)
            self._keys[at] = types if isinstance(types, Reason) else self._summary(at, column, types, options, name)
        return self._keys[at]

    def _summary(
        self, at: int, column: Any, types: Sequence[ValueType], options: PruningOptions, name: str
    ) -> KeySummary:
        values = pa.ipc.open_stream(long_bytes(self._spark, self._rows.values(at, column))).read_all()
        return built(values, types, KeyLimits.of(options)).finish(1, source=f"rows of {name}", subject=name)

    def instead_of(self, plan: Any) -> Any:
        """A plan of these rows under the column ids of `plan`, which gives the same rows."""
        return self._rows.insteadOf(plan)


def local_rows(spark: SparkSession, plan: Any, name: str) -> LocalRows | None:
    """The rows of a plan; None where it reads much or gives more rows than are few."""
    df = frame_of(spark, plan)
    most = MOST_LONG_ROWS if any(_is_long(field.dataType) for field in df.schema.fields) else MOST_ROWS
    cut = limited(df, most)
    if bytes_read(cut) > _MOST_BYTES_READ:
        return None
    rows = instance(spark, _ROWS, _ROWS_SOURCE, cut._jdf.queryExecution())  # noqa: SLF001 - plans have no public door
    with broadcasts_released(cut):
        count = int(rows.collect(f"rows of {name}"))
    # A partition that was cut gave all the rows it may.
    return LocalRows(count, int(rows.bytes()), rows, spark) if count < most else None


def _is_long(type_: DataType) -> bool:
    return isinstance(type_, _LONG)
