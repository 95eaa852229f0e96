"""Numbers of tasks as a DataFrame, of which Spark believes that it leads to as many bytes as another one has."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from connectors.compiled import instance
from connectors.spark_files import frame_of

# What the name of the numbers begins with, by which a scan is known in a plan.
PREFIX = "scanprune_"
_IDS = "TaskIds"
# Without a size of its own the scan would be as small for Spark as the numbers are, and be broadcast. For Spark a map
# has the bytes of what it maps, however wide its rows are.
_IDS_SOURCE = """
import org.apache.spark.sql.catalyst.expressions.Attribute;
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

    public LogicalPlan plan(LogicalPlan like, String name) {
        Statistics statistics = new Statistics(
            like.stats().sizeInBytes(), scala.Option.empty(), AttributeMap$.MODULE$.empty(), false);
        Attribute number = ((Attribute) ids.analyzed().output().head()).withName(name);
        return new LogicalRDD(sequence(new Object[] {number}), ids.toRdd(), new UnknownPartitioning(0),
            sequence(new Object[0]), false, scala.Option.empty(), ids.sparkSession(),
            scala.Option.apply(statistics), scala.Option.empty());
    }

    private static scala.collection.immutable.Seq sequence(Object[] items) {
        return scala.jdk.javaapi.CollectionConverters.asScala(java.util.Arrays.asList(items)).toSeq();
    }
}
"""


def task_ids(spark: SparkSession, count: int, like: DataFrame, digest: str) -> DataFrame:
    """The numbers below `count`, each in a task of its own; for Spark they, and a map of them, are as large as `like`.

    That is what Spark estimates of its plan as it is analysed. `digest` tells what is made of the numbers.
    """
    ids = spark.range(0, count, 1, count)
    execution, wanted = (each._jdf.queryExecution() for each in (ids, like))  # noqa: SLF001 - plans have no public door
    plan = instance(spark, _IDS, _IDS_SOURCE, execution).plan(wanted.analyzed(), f"{PREFIX}{digest}")
    return frame_of(spark, plan)
