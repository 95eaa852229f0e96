import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Walk over the plan of a build, before it runs, if the query has a cache: a text of its operators, and its leaves.
 * If the leaves of two builds give the same rows, equal texts mean equal results.
 *
 * It covers projections, filters, joins and aggregates, with deterministic expressions of Spark itself, over files and
 * over rows that an earlier build gave. Any other plan is refused. A leaf that reads files is written as its place in
 * the plan and its columns; connectors add a fingerprint of the files. Ids of columns are numbered in the order of
 * their occurrence, and names of columns that no result depends on are left out.
 *
 * It relies on the rule that TreeNode.productIterator() gives all constructor arguments of a node.
 */
public class PlanFingerprint extends FingerprintText {
    private static final String SQL = "org.apache.spark.sql.";
    private static final java.util.List OPERATORS = java.util.Arrays.asList(
        new Object[] {"Project", "Filter", "Join", "Aggregate", "LocalRelation"});
    private static final java.util.List ARGUMENTS = java.util.Arrays.asList(
        new Object[] {SQL + "catalyst.", SQL + "internal.", "scala.Tuple"});
    private final java.util.HashMap ids = new java.util.HashMap();
    private final java.util.ArrayList leaves = new java.util.ArrayList();

    java.util.List leaves() {
        return leaves;
    }

    public void add(Object item) throws Exception {
        if (item instanceof LogicalRelation) {
            addLeaf((LogicalRelation) item);
        } else if (item instanceof TreeNode) {
            addNode((TreeNode) item);
        } else if (item instanceof ExprId) {
            addId((ExprId) item);
        } else if (item instanceof org.apache.spark.QueryContext) {
            write("context", "");
        } else {
            super.add(item);
        }
    }

    private void addLeaf(LogicalRelation leaf) throws Exception {
        if (leaf.isStreaming() || !(leaf.relation() instanceof HadoopFsRelation)) {
            throw new UnsupportedOperationException("it reads a " + leaf.relation().getClass().getSimpleName());
        }
        write("leaf", String.valueOf(leaves.size()));
        addAll("columns", leaf.output().iterator());
        leaves.add(leaf);
    }

    private void addNode(TreeNode node) throws Exception {
        if (node instanceof AttributeReference) {
            AttributeReference column = (AttributeReference) node;
            write("column", String.valueOf(column.nullable()));
            addId(column.exprId());
            add(column.dataType());
            add(column.metadata());
        } else if (node instanceof Alias) {
            Alias column = (Alias) node;
            write("alias", "");
            addId(column.exprId());
            add(column.child());
            add(column.explicitMetadata());
            add(column.nonInheritableMetadataKeys());
        } else if (node instanceof Expression ? isKnown((Expression) node) : isKnown(node)) {
            write("node", node.getClass().getName());
            addAll("arguments", ((scala.Product) node).productIterator());
            addAll("arguments", node.otherCopyArgs().iterator());
        } else {
            throw new UnsupportedOperationException("it has a " + node.getClass().getSimpleName());
        }
    }

    private static boolean isKnown(TreeNode operator) {
        return isSparks(operator) && OPERATORS.contains(operator.getClass().getSimpleName());
    }

    private static boolean isKnown(Expression expression) {
        return isSparks(expression) && expression.deterministic() && !(expression instanceof UserDefinedExpression);
    }

    private static boolean isSparks(TreeNode node) {
        return node instanceof scala.Product && node.getClass().getName().startsWith(SQL + "catalyst.")
            && node.getClass().getClassLoader() == LogicalPlan.class.getClassLoader();
    }

    public void addOther(Object item) throws Exception {
        String kind = item.getClass().getName();
        boolean isKnown = false;
        for (int at = 0; at < ARGUMENTS.size() && item instanceof scala.Product; at++) {
            isKnown |= kind.startsWith((String) ARGUMENTS.get(at));
        }
        if (!isKnown) {
            super.addOther(item);
        }
        write("argument", kind);
        addAll("arguments", ((scala.Product) item).productIterator());
    }

    private void addId(ExprId id) throws Exception {
        if (!ids.containsKey(id)) {
            ids.put(id, Integer.valueOf(ids.size()));
        }
        write("id", ids.get(id).toString());
    }
}
