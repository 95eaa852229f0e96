import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.ui.SQLExecutionUIData;

/**
 * Walk over the analysed plan of a pruned scan, once it is made: the ids of the columns of its table, by which its
 * executions are found, and the id of the latest execution of the session before it.
 *
 * It relies on SQLAppStatusStore.executionsList().
 */
public class ScanLeaves {
    private final SparkSession session;
    private final LogicalPlan plan;

    public ScanLeaves(SparkSession session, LogicalPlan analyzed) {
        this.session = session;
        this.plan = withoutSemiJoins(analyzed);
    }

    /**
     * Three lines: the id of the latest execution, -1 before the first; the ids of all columns of all leaves; and the
     * root paths of the only leaf, if there is one and it reads files.
     */
    public String text() {
        StringBuilder columns = new StringBuilder();
        scala.collection.Seq leaves = plan.collectLeaves();
        scala.collection.Iterator each = leaves.iterator();
        while (each.hasNext()) {
            scala.collection.Iterator output = ((LogicalPlan) each.next()).output().iterator();
            while (output.hasNext()) {
                columns.append(((Attribute) output.next()).exprId().id()).append(' ');
            }
        }
        return last() + "\n" + columns + "\n" + (leaves.size() == 1 ? roots(leaves.head()) : "");
    }

    private long last() {
        scala.collection.Seq executions = session.sharedState().statusStore().executionsList();
        return executions.isEmpty() ? -1L : ((SQLExecutionUIData) executions.last()).executionId();
    }

    private static String roots(Object leaf) {
        boolean hasFiles = leaf instanceof LogicalRelation
            && ((LogicalRelation) leaf).relation() instanceof HadoopFsRelation;
        return hasFiles ? ((HadoopFsRelation) ((LogicalRelation) leaf).relation()).location().rootPaths().mkString(" ")
            : "";
    }

    /**
     * The part of a plan below the semi joins at its top, whose right sides read keys. Joins below a SubqueryAlias may
     * belong to a view.
     */
    private static LogicalPlan withoutSemiJoins(LogicalPlan plan) {
        LogicalPlan node = plan;
        while (!(node instanceof SubqueryAlias) && !node.children().isEmpty()) {
            boolean isTest = node instanceof Join && ((Join) node).joinType().equals(LeftSemi$.MODULE$);
            if (node.children().size() > 1 && !isTest) {
                return node;
            }
            node = (LogicalPlan) node.children().head();
        }
        return node;
    }
}
