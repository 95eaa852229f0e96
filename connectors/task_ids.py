"""Numbers of tasks as a DataFrame, of which Spark believes that it leads to so many bytes."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from connectors.compiled import instance
from connectors.spark_files import frame_of

_IDS = "TaskIds"
# Without a size of its own the scan would be as small for Spark as the numbers are, and be broadcast.
_IDS_SOURCE = """
import org.apache.spark.sql.catalyst.expressions.AttributeMap$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;

public class TaskIds {
    private final QueryExecution ids;

    public TaskIds(QueryExecution ids) {
        this.ids = ids;
    }

    public LogicalPlan plan(long bytes) {
        Statistics statistics = new Statistics(
            scala.math.BigInt.apply(bytes), scala.Option.empty(), AttributeMap$.MODULE$.empty(), false);
        scala.collection.immutable.Seq nothing =
            scala.jdk.javaapi.CollectionConverters.asScala(new java.util.ArrayList()).toSeq();
        return new LogicalRDD(ids.analyzed().output(), ids.toRdd(), new UnknownPartitioning(0), nothing, false,
            scala.Option.empty(), ids.sparkSession(), scala.Option.apply(statistics), scala.Option.empty());
    }
}
"""
# One bigint, as Spark sizes rows.
_BYTES_PER_ROW = 16


def task_ids(spark: SparkSession, count: int, rows: int) -> DataFrame:
    """The numbers below `count`, each in a task of its own; for Spark they are, and a map of them is, `rows` rows."""
    ids = spark.range(0, count, 1, count)
    # Spark takes a map to change the width of rows alone.
    execution = ids._jdf.queryExecution()  # noqa: SLF001 - plans have no public door
    return frame_of(spark, instance(spark, _IDS, _IDS_SOURCE, execution).plan(max(1, rows) * _BYTES_PER_ROW))
