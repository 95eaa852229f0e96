import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.StringType;

/**
 * Description of the nodes of an optimised plan, beside Spark's JSON of the plan: a line for each node in the order of
 * OptimizedPlan's visits. It has the class, 1 if the rows repeat or else 0, the traits of its expressions, the name of
 * the table, the ids of columns.
 *
 * Rows do not repeat where an expression is not deterministic, or where they depend on the order of the input and the
 * JSON does not show it: a sum that is NULL on overflow, the one of several texts equal under a collation that
 * represents their group or is the maximum, and the sign of a zero that is the maximum and is cast to a text.
 *
 * It relies on EvalMode and UnsafeRowUtils.
 */
public class NodeLines {
    private static final int DIGITS_OF_ANY_SUM = 28;
    private final java.util.ArrayList names = new java.util.ArrayList();
    private final java.util.ArrayList columns = new java.util.ArrayList();
    private final java.util.ArrayList traits = new java.util.ArrayList();
    private final java.util.BitSet unrepeatable = new java.util.BitSet();
    private final java.util.BitSet anyZero = new java.util.BitSet();
    private boolean showsZeros = false;

    void add(LogicalPlan node) {
        int at = names.size();
        names.add(node.getClass().getName());
        columns.add(columns(node));
        traits.add(node.children().isEmpty() ? "-" : ExpressionTraits.of(node));
        scala.collection.Iterator expressions = node.expressions().iterator();
        while (expressions.hasNext()) {
            Expression expression = (Expression) expressions.next();
            if (!expression.deterministic()) {
                unrepeatable.set(at);
            }
            look(at, expression);
        }
        if (node instanceof LogicalRDD && !new RddRows((LogicalRDD) node).repeat()) {
            unrepeatable.set(at);
        }
        if (node instanceof InMemoryRelation && !isFixed(((InMemoryRelation) node).cacheBuilder().logicalPlan())) {
            unrepeatable.set(at);
        }
        if (node instanceof Aggregate && !areSame(((Aggregate) node).groupingExpressions())) {
            unrepeatable.set(at);
        }
    }

    String text() {
        StringBuilder text = new StringBuilder();
        for (int at = 0; at < names.size(); at++) {
            boolean repeats = !unrepeatable.get(at) && !(showsZeros && anyZero.get(at));
            text.append(names.get(at)).append(repeats ? " 1 " : " 0 ").append(traits.get(at)).append(' ');
            text.append(columns.get(at)).append('\n');
        }
        return text.toString();
    }

    /**
     * True if rows of a cached plan are the same when they are computed again from the same tables.
     */
    private static boolean isFixed(LogicalPlan cached) {
        boolean isIt = cached.deterministic();
        scala.collection.Iterator leaves = cached.collectLeaves().iterator();
        while (isIt && leaves.hasNext()) {
            Object leaf = leaves.next();
            isIt = !(leaf instanceof LogicalRDD) || new RddRows((LogicalRDD) leaf).repeat();
        }
        return isIt;
    }

    private void look(int at, Expression expression) {
        if (expression instanceof Sum && overflowsToNull((Sum) expression)) {
            unrepeatable.set(at);
        } else if (expression instanceof Max || expression instanceof Min) {
            unrepeatable.set(at, unrepeatable.get(at) || !isSame(expression));
            anyZero.set(at, anyZero.get(at) || isFloat(expression));
        } else if (expression instanceof Cast && expression.dataType() instanceof StringType) {
            showsZeros |= isFloat(((Cast) expression).child());
        }
        scala.collection.Iterator children = expression.children().iterator();
        while (children.hasNext()) {
            look(at, (Expression) children.next());
        }
    }

    private static boolean isSame(Expression expression) {
        return UnsafeRowUtils.isBinaryStable(expression.dataType());
    }

    private static boolean areSame(scala.collection.Seq keys) {
        scala.collection.Iterator rest = keys.iterator();
        while (rest.hasNext()) {
            if (!isSame((Expression) rest.next())) {
                return false;
            }
        }
        return true;
    }

    private static boolean isFloat(Expression expression) {
        return expression.dataType() instanceof DoubleType || expression.dataType() instanceof FloatType;
    }

    private static boolean overflowsToNull(Sum sum) {
        Object mode = sum.evalContext().evalMode();
        boolean isWide = sum.child().dataType() instanceof DecimalType
            && ((DecimalType) sum.child().dataType()).precision() > DIGITS_OF_ANY_SUM;
        return mode.equals(EvalMode$.MODULE$.TRY()) || isWide && !mode.equals(EvalMode$.MODULE$.ANSI());
    }

    private static String columns(LogicalPlan node) {
        StringBuilder text = new StringBuilder(
            java.net.URLEncoder.encode(table(node), java.nio.charset.StandardCharsets.UTF_8));
        scala.collection.Iterator output = node.output().iterator();
        while (output.hasNext()) {
            text.append(' ').append(((Attribute) output.next()).exprId().id());
        }
        return text.toString();
    }

    private static String table(LogicalPlan node) {
        if (!(node instanceof LogicalRelation)) {
            return "-";
        }
        LogicalRelation leaf = (LogicalRelation) node;
        if (leaf.catalogTable().isDefined()) {
            TableIdentifier name = ((CatalogTable) leaf.catalogTable().get()).identifier();
            boolean isPlain = name.database().isEmpty() || name.database().get().equals("default");
            return isPlain ? name.table() : name.database().get() + "." + name.table();
        }
        HadoopFsRelation files = FileScan.files(leaf);
        if (files != null) {
            scala.collection.Seq roots = files.location().rootPaths();
            return roots.isEmpty() ? "files" : ((org.apache.hadoop.fs.Path) roots.head()).getName();
        }
        return leaf.relation().getClass().getSimpleName();
    }
}
