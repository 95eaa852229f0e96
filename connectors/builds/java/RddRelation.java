import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.AttributeMap$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;

/**
 * A relation of the rows of an RDD with the columns of a plan.
 *
 * It relies on the constructor of LogicalRDD.
 */
public class RddRelation {
    private RddRelation() {}

    /**
     * Spark expects so many bytes and rows.
     */
    static LogicalPlan of(
        SparkSession session, LogicalPlan plan, RDD rdd, scala.math.BigInt bytes, scala.Option count
    ) {
        return of(session, plan, rdd, new UnknownPartitioning(rdd.getNumPartitions()), bytes, count);
    }

    static LogicalPlan of(
        SparkSession session, LogicalPlan plan, RDD rdd, Partitioning partitioning, scala.math.BigInt bytes,
        scala.Option count
    ) {
        Statistics expected = new Statistics(bytes, count, AttributeMap$.MODULE$.empty(), false);
        return new LogicalRDD(plan.output(), rdd, partitioning,
            scala.jdk.javaapi.CollectionConverters.asScala(new java.util.ArrayList()).toSeq(), false,
            scala.Option.empty(), session, scala.Option.apply(expected), scala.Option.empty());
    }
}
