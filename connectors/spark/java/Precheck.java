import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;

/**
 * Walk over the analysed plan of a query before Spark optimises it: isCandidate() is false if pruning cannot help, so
 * that the plan is not optimised a second time for nothing.
 *
 * Pruning needs a join, which the optimiser makes only from two inputs or a plan inside an expression, or a limit over
 * an order; and a scan has no more bytes than the files of its table. A leaf of an unknown kind counts as large and is
 * sized later, and so does a leaf whose size is not cached, since computing it may take a job.
 *
 * In an optimised plan each index knows its size, so that no calls are needed: null.
 *
 * Most queries are no candidates, so the walk looks at no expression and ends where both are found. The optimised plan
 * would answer better, and does so later, but making it is what has to be spared.
 *
 * It relies on PartitioningAwareFileIndex, and on connectors for sizes of other file indexes.
 */
public class Precheck {
    private final long least;
    private final boolean topK;
    private final IndexCalls sizes;
    private boolean filters = false;
    private boolean isLarge = false;

    public Precheck(LogicalPlan plan, Number least, boolean topK, String sizeCalls) throws Exception {
        this.least = least.longValue();
        this.topK = topK;
        this.sizes = sizeCalls == null ? null : new IndexCalls(sizeCalls);
        look(plan);
    }

    public boolean isCandidate() {
        return filters && isLarge;
    }

    private void look(LogicalPlan plan) throws Exception {
        scala.collection.Seq inner = plan.subqueries();
        scala.collection.Seq children = plan.children();
        filters |= !inner.isEmpty() || children.size() > 1 && !(plan instanceof Union) && !(plan instanceof WithCTE);
        filters |= topK && takesFirst(plan);
        isLarge |= children.isEmpty() && bytes(plan) >= least;
        lookAt(inner.iterator());
        lookAt(children.iterator());
    }

    private static boolean takesFirst(LogicalPlan plan) {
        if (plan instanceof Window) {
            return ((Window) plan).partitionSpec().isEmpty();
        }
        boolean isLimit = plan instanceof GlobalLimit;
        LogicalPlan below = plan;
        while (isLimit && (below instanceof GlobalLimit || below instanceof LocalLimit || below instanceof Offset
            || below instanceof Project || below instanceof SubqueryAlias)) {
            below = (LogicalPlan) below.children().head();
        }
        return below instanceof Sort && below != plan;
    }

    private void lookAt(scala.collection.Iterator plans) throws Exception {
        while (!isCandidate() && plans.hasNext()) {
            look((LogicalPlan) plans.next());
        }
    }

    private long bytes(LogicalPlan leaf) throws Exception {
        if (leaf instanceof LocalRelation || leaf instanceof OneRowRelation || leaf instanceof Range
            || leaf instanceof InMemoryRelation || leaf instanceof LogicalRDD || leaf instanceof CTERelationRef) {
            return -1L;
        }
        HadoopFsRelation files = FileScan.files(leaf);
        return files == null ? Long.MAX_VALUE : bytes(files.location());
    }

    private long bytes(FileIndex index) throws Exception {
        if (index instanceof PartitioningAwareFileIndex || sizes == null) {
            return index.sizeInBytes();
        }
        scala.Option size = (scala.Option) sizes.result(index);
        return size != null && size.isDefined() ? ((Number) size.get()).longValue() : Long.MAX_VALUE;
    }
}
