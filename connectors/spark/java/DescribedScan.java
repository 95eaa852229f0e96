import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * A read of one table of files whose scan Spark shows with a text.
 *
 * It relies on LogicalRelation.copy(), and on withNewChildrenInternal() and copyTagsFrom() of plans.
 */
public class DescribedScan {
    private final Dataset read;
    private final String text;

    public DescribedScan(Dataset read, String text) {
        this.read = read;
        this.text = text;
    }

    public Dataset frame() {
        return Dataset.ofRows(read.sparkSession(), described(read.queryExecution().analyzed()));
    }

    private LogicalPlan described(LogicalPlan plan) {
        HadoopFsRelation files = FileScan.files(plan);
        if (files != null) {
            LogicalRelation leaf = (LogicalRelation) plan;
            return leaf.copy(new DescribedRelation(files, text), leaf.output(), leaf.catalogTable(),
                leaf.isStreaming(), leaf.stream());
        }
        if (plan.children().size() != 1) {
            return plan;
        }
        java.util.ArrayList child = new java.util.ArrayList();
        child.add(described((LogicalPlan) plan.children().head()));
        // withNewChildren() keeps children that are equal to the new ones, as described ones are.
        LogicalPlan found = (LogicalPlan) plan.withNewChildrenInternal(
            scala.jdk.javaapi.CollectionConverters.asScala(child).toIndexedSeq());
        found.copyTagsFrom(plan);
        return found;
    }
}
