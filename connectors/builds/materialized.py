"""Builds whose rows come to the driver's JVM, to be joined as they are: the query does not run them a second time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from connectors.delta.file_index import tell_conditions
from connectors.jobs.executed_plan import execution_released
from connectors.keys.frame import MOST_LONG_ROWS, MOST_PARTITIONS, MOST_ROWS, key_types
from connectors.keys.local import built
from connectors.spark.jvm import instance
from connectors.spark.transfer import long_bytes
from pruning.keys.key_set import KeyLimits
from pruning.keys.summary import KeySummary
from pruning.options import PruningOptions
from pruning.reasons import Reason
from pruning.values.types import ValueType

# Rows stay in Spark's own form from the scan to the join: no value is converted.
_ROWS = "LocalRows"
_ROWS_SOURCE = """
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LocalLimitExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.arrow.ArrowBatchStreamWriter;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.VariantType;

public class LocalRows extends scala.runtime.AbstractFunction0 {
    private final int most;
    private QueryExecution execution;
    private java.util.List rows;

    public LocalRows(SparkSession session, LogicalPlan plan, int most, int mostLong, int partitions) {
        this.most = isLong(plan.output().iterator()) ? mostLong : most;
        Literal limit = new Literal(Integer.valueOf(this.most), DataTypes.IntegerType);
        execution = Dataset.ofRows(session, new LocalLimit(limit, new Repartition(partitions, false, plan)))
            .queryExecution();
    }

    private static boolean isLong(scala.collection.Iterator columns) {
        boolean found = false;
        while (!found && columns.hasNext()) {
            DataType type = ((Attribute) columns.next()).dataType();
            found = type instanceof StringType || type instanceof BinaryType || type instanceof ArrayType
                || type instanceof MapType || type instanceof StructType || type instanceof VariantType;
        }
        return found;
    }

    public int most() {
        return most;
    }

    public QueryExecution execution() {
        return execution;
    }

    public long bytesRead() {
        java.math.BigInteger sum = java.math.BigInteger.ZERO;
        scala.collection.Iterator leaves = execution.optimizedPlan().collectLeaves().iterator();
        while (leaves.hasNext()) {
            sum = sum.add(((LogicalPlan) leaves.next()).stats().sizeInBytes().bigInteger());
        }
        return sum.min(java.math.BigInteger.valueOf(Long.MAX_VALUE)).longValue();
    }

    public Object apply() {
        SparkPlan plan = execution.executedPlan();
        // Spark numbers limits in the code that it makes of them, so that each would be compiled anew.
        if (plan instanceof WholeStageCodegenExec && ((WholeStageCodegenExec) plan).child() instanceof LocalLimitExec) {
            return ((WholeStageCodegenExec) plan).child().executeCollect();
        }
        return plan.executeCollect();
    }

    public int collect(String name) {
        Object found = SQLExecution.withNewExecutionId(execution, scala.Option.apply(name), this);
        rows = java.util.Arrays.asList((Object[]) found);
        // Whoever keeps the rows keeps nothing of the plan that they came from.
        execution = null;
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


@dataclass(frozen=True, slots=True)
class TooMany:
    """A build that gave as many rows as it may, so it has these at least."""

    count: int


@dataclass(frozen=True, slots=True, eq=False)
class MaterializedBuild:
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
        return built(self._values(at, column), types, KeyLimits.of(options)).finish(
            1, source=f"rows of {name}", subject=name
        )

    def tuples(self, columns: Mapping[int, Any], options: PruningOptions, name: str) -> KeySummary | Reason:
        """The summary of the values at several places of each row; `columns` are their attributes. No job is run."""
        fields = [StructType.fromJson(json.loads(self._rows.type(each))).fields[0] for each in columns.values()]
        types = key_types(StructType(fields), name)
        if isinstance(types, Reason):
            return types
        values = [self._values(at, column) for at, column in columns.items()]
        rows = pa.table({f"k{at}": each.column(0) for at, each in enumerate(values)})
        return built(rows, types, KeyLimits.of(options)).finish(1, source=f"rows of {name}", subject=name)

    def _values(self, at: int, column: Any) -> pa.Table:
        return pa.ipc.open_stream(long_bytes(self._spark, self._rows.values(at, column))).read_all()

    def held(self) -> MaterializedRows:
        """The rows alone."""
        return MaterializedRows(self.count, self.nbytes, self._rows)

    def instead_of(self, plan: Any) -> Any:
        """A plan of these rows under the column ids of `plan`, which gives the same rows."""
        return self._rows.insteadOf(plan)


@dataclass(frozen=True, slots=True, eq=False)
class MaterializedRows:
    """Rows on the heap of the driver that hold no session and no plan."""

    count: int
    nbytes: int
    _rows: Any

    def of(self, spark: SparkSession) -> MaterializedBuild:
        """The same rows for a query of a session."""
        return MaterializedBuild(self.count, self.nbytes, self._rows, spark)


def local_rows(
    spark: SparkSession, plan: Any, name: str, most_bytes: int | None = _MOST_BYTES_READ
) -> MaterializedBuild | TooMany | None:
    """The rows of a plan; None where it reads more than `most_bytes`, so that it was not run."""
    session = spark._jsparkSession  # noqa: SLF001 - PySpark's only door to the JVM
    # Each call over the bridge waits for those of the builds beside this one.
    rows = instance(spark, _ROWS, _ROWS_SOURCE, session, plan, MOST_ROWS, MOST_LONG_ROWS, MOST_PARTITIONS)
    execution = rows.execution()
    tell_conditions(spark, execution.optimizedPlan())
    if most_bytes is not None and int(rows.bytesRead()) > most_bytes:
        return None
    with execution_released(spark, execution):
        count = int(rows.collect(f"rows of {name}"))
    # A partition that was cut gave all the rows it may.
    return MaterializedBuild(count, int(rows.bytes()), rows, spark) if count < int(rows.most()) else TooMany(count)
