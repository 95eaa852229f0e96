import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;

/**
 * A read of one table of files whose scan Spark shows with a text.
 */
public class DescribedScan {
    private final Dataset read;
    private final String text;

    public DescribedScan(Dataset read, String text) {
        this.read = read;
        this.text = text;
    }

    public Dataset frame() {
        LogicalPlan plan = read.queryExecution().analyzed();
        DescribedLeaves leaves = new DescribedLeaves(plan);
        LogicalPlan below = plan;
        while (below.children().size() == 1) {
            below = (LogicalPlan) below.children().head();
        }
        leaves.describe(below, text);
        return Dataset.ofRows(read.sparkSession(), leaves.described());
    }
}
