import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;

/**
 * Walk over the optimised and the physical plan of a query that ran: the file indexes that it read, its tasks, and
 * operators by which another run may give other rows.
 *
 * It relies on ShuffleExchangeExec.numMappers().
 */
public class RanPlan {
    private final java.util.ArrayList indexes = new java.util.ArrayList();
    private final java.util.LinkedHashSet found = new java.util.LinkedHashSet();
    private final java.util.List names;
    private final String tasks;
    private boolean isDeterministic = true;

    public RanPlan(QueryExecution execution, String names) {
        this.names = java.util.Arrays.asList(names.split(" "));
        LogicalPlan plan = execution.optimizedPlan();
        look(plan);
        scala.collection.Iterator inner = plan.subqueriesAll().iterator();
        while (inner.hasNext()) {
            look((LogicalPlan) inner.next());
        }
        tasks = tasks(execution.executedPlan());
    }

    /**
     * Three words and then the names of those operators that the query has: true if it is deterministic, the number of
     * tasks below the topmost exchange or a minus sign, and the number of file indexes.
     */
    public String text() {
        StringBuilder words = new StringBuilder();
        words.append(isDeterministic).append(' ').append(tasks).append(' ').append(indexes.size());
        for (int at = 0; at < names.size(); at++) {
            words.append(found.contains(names.get(at)) ? " " + names.get(at) : "");
        }
        return words.toString();
    }

    public Object index(int at) {
        return indexes.get(at);
    }

    private void look(LogicalPlan plan) {
        isDeterministic = isDeterministic && plan.deterministic();
        scala.collection.Iterator leaves = plan.collectLeaves().iterator();
        while (leaves.hasNext()) {
            Object leaf = leaves.next();
            if (leaf instanceof LogicalRelation && ((LogicalRelation) leaf).relation() instanceof HadoopFsRelation) {
                indexes.add(((HadoopFsRelation) ((LogicalRelation) leaf).relation()).location());
            }
        }
        addNames(plan);
    }

    private void addNames(LogicalPlan plan) {
        found.add(plan.nodeName());
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            addNames((LogicalPlan) children.next());
        }
    }

    /**
     * The number of tasks on the map side of the topmost exchange, above which each node has one child.
     */
    private static String tasks(SparkPlan whole) {
        SparkPlan plan = whole;
        while (true) {
            if (plan instanceof AdaptiveSparkPlanExec) {
                plan = ((AdaptiveSparkPlanExec) plan).executedPlan();
            } else if (plan instanceof QueryStageExec) {
                plan = ((QueryStageExec) plan).plan();
            } else if (plan instanceof ShuffleExchangeExec) {
                return String.valueOf(((ShuffleExchangeExec) plan).numMappers());
            } else if (plan.children().size() == 1) {
                plan = (SparkPlan) plan.children().head();
            } else {
                return "-";
            }
        }
    }
}
