import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Rewrite of a pruned plan after all nodes were replaced: some scans of it get new column ids, by which the report
 * tells them from the scans of the unpruned query. The ids are written through to the top, where the plan has the ids
 * that it had.
 *
 * A projection above each scan would do as well, but Spark does not remove it below the first child of a union, whose
 * ids are those of the union: a subtree there would differ from its equals below the other children, and be run once
 * more.
 *
 * It relies on LogicalRelation.newInstance(), on transformUpWithNewOutput, of which two parameters have Scala's
 * defaults, and on setAnalyzed().
 */
public class NewScanColumns extends scala.runtime.AbstractPartialFunction {
    private final LogicalPlan plan;
    private final java.util.Map ids = new java.util.IdentityHashMap();
    private final java.util.List scans = new java.util.ArrayList();

    public NewScanColumns(LogicalPlan plan) {
        this.plan = plan;
    }

    /**
     * Names a part of the plan that reads one table, with its tests of rows.
     */
    public void add(LogicalPlan part) {
        LogicalPlan leaf = part;
        while (!leaf.children().isEmpty()) {
            leaf = (LogicalPlan) leaf.children().head();
        }
        ids.put(leaf, new StringBuilder());
        scans.add(leaf);
    }

    public LogicalPlan rewritten() {
        if (makesItsInput(plan)) {
            for (int at = 0; at < scans.size(); at++) {
                scala.collection.Iterator columns = ((LogicalPlan) scans.get(at)).output().iterator();
                while (columns.hasNext()) {
                    addId(scans.get(at), (Attribute) columns.next());
                }
            }
            return plan;
        }
        LogicalPlan found = in(plan);
        found.setAnalyzed();
        return found;
    }

    /**
     * The new ids of each scan, in the order in which they were named; no id for a part that does not read files.
     */
    public String text() {
        java.util.ArrayList lines = new java.util.ArrayList();
        for (int at = 0; at < scans.size(); at++) {
            lines.add(ids.get(scans.get(at)).toString());
        }
        return String.join("\n", lines);
    }

    /**
     * True where an operator makes columns with the ids of those that it reads, as those do that repeat rows for
     * EXCEPT ALL and INTERSECT ALL. The rewrite takes such columns for new ones, and leaves their old ids.
     */
    private static boolean makesItsInput(LogicalPlan part) {
        AttributeSet both = part.producedAttributes().intersect(part.inputSet());
        scala.collection.Iterator expressions = part.expressions().iterator();
        while (!both.isEmpty() && expressions.hasNext()) {
            if (!((Expression) expressions.next()).references().intersect(both).isEmpty()) {
                return true;
            }
        }
        return anyMakesItsInput(part.children()) || anyMakesItsInput(part.subqueries());
    }

    private static boolean anyMakesItsInput(scala.collection.Iterable parts) {
        scala.collection.Iterator each = parts.iterator();
        while (each.hasNext()) {
            if (makesItsInput((LogicalPlan) each.next())) {
                return true;
            }
        }
        return false;
    }

    private void addId(Object scan, Attribute column) {
        ((StringBuilder) ids.get(scan)).append(column.exprId().id()).append(' ');
    }

    private LogicalPlan in(LogicalPlan part) {
        LogicalPlan found = (LogicalPlan) part.transformUpWithNewOutput(this,
            part.transformUpWithNewOutput$default$2(), part.transformUpWithNewOutput$default$3());
        return new SameColumns(found, part).plan();
    }

    public boolean isDefinedAt(Object node) {
        return ids.containsKey(node) && node instanceof LogicalRelation || !((LogicalPlan) node).subqueries().isEmpty();
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
        if (!isDefinedAt(node)) {
            return otherwise.apply(node);
        }
        java.util.ArrayList pairs = new java.util.ArrayList();
        if (!ids.containsKey(node)) {
            return new scala.Tuple2(((LogicalPlan) node).transformExpressions(new Subqueries(this)),
                SameColumns.sequence(pairs));
        }
        LogicalPlan renewed = (LogicalPlan) ((LogicalRelation) node).newInstance();
        scala.collection.Iterator before = ((LogicalPlan) node).output().iterator();
        scala.collection.Iterator after = renewed.output().iterator();
        while (after.hasNext()) {
            Attribute column = (Attribute) after.next();
            addId(node, column);
            pairs.add(new scala.Tuple2(before.next(), column));
        }
        return new scala.Tuple2(renewed, SameColumns.sequence(pairs));
    }

    /**
     * The same rewrite of the plans inside of expressions.
     */
    public static class Subqueries extends scala.runtime.AbstractPartialFunction {
        private final NewScanColumns columns;

        Subqueries(NewScanColumns columns) {
            this.columns = columns;
        }

        public boolean isDefinedAt(Object expression) {
            return expression instanceof SubqueryExpression;
        }

        public Object applyOrElse(Object expression, scala.Function1 otherwise) {
            if (!isDefinedAt(expression)) {
                return otherwise.apply(expression);
            }
            SubqueryExpression found = (SubqueryExpression) expression;
            return found.withNewPlan(columns.in((LogicalPlan) found.plan()));
        }
    }
}
