import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeMap$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;

/**
 * Relation of the numbers of tasks with the size of another plan.
 *
 * Spark estimates a map by the bytes of its input, so it would otherwise broadcast the scan as if it were as small as
 * the numbers.
 *
 * It relies on the constructors of LogicalRDD and Statistics.
 */
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
