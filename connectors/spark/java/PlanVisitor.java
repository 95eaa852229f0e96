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
import org.apache.spark.sql.catalyst.plans.logical.BROADCAST$;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint$;
import org.apache.spark.sql.catalyst.plans.logical.JoinStrategyHint;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.NO_BROADCAST_HASH$;
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.StringType;

/**
 * Visitor of each node after its children and the plans of its subqueries, which may replace nodes.
 *
 * It also reports for each node if its rows depend on the order of its input where the text of a plan does not show it:
 * a sum that is NULL on overflow, the one of several texts equal under a collation that represents their group or is
 * the maximum, and the sign of a zero that is cast to a text.
 *
 * It relies on the order in which transformUpWithSubqueries visits, on JoinHint, HintInfo, EvalMode and UnsafeRowUtils.
 * NO_BROADCAST_HASH is the hint that rules out broadcast hash joins alone and leaves all other kinds of joins possible.
 */
public class PlanVisitor extends scala.runtime.AbstractPartialFunction {
    private static final int DIGITS_OF_ANY_SUM = 28;
    private final java.util.ArrayList nodes = new java.util.ArrayList();
    private final java.util.Map expected;
    private final java.util.Map others;
    private final java.util.Map sides;
    private Boolean textOfFloats = null;

    public PlanVisitor(java.util.Map expected, java.util.Map others, java.util.Map sides) {
        this.expected = expected;
        this.others = others;
        this.sides = sides;
    }

    public boolean isDefinedAt(Object node) {
        return true;
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
        Integer at = Integer.valueOf(nodes.size());
        nodes.add(node);
        if (sides.containsKey(at)) {
            return hinted((Join) node, (String) sides.get(at));
        }
        if (!others.containsKey(at)) {
            return node;
        }
        if (expected.get(at) != node) {
            throw new IllegalStateException("node " + at + " of the plan is another one than was read");
        }
        return others.get(at);
    }

    public Object node(int at) {
        return nodes.get(at);
    }

    public java.util.List nodes(String places) {
        java.util.ArrayList found = new java.util.ArrayList();
        java.util.StringTokenizer rest = new java.util.StringTokenizer(places);
        while (rest.hasMoreTokens()) {
            found.add(nodes.get(Integer.parseInt(rest.nextToken())));
        }
        return found;
    }

    public java.util.List texts(LogicalPlan plan) {
        return java.util.Arrays.asList(new Object[] {plan.toJSON(), described()});
    }

    private String described() {
        StringBuilder text = new StringBuilder();
        for (int at = 0; at < nodes.size(); at++) {
            LogicalPlan node = (LogicalPlan) nodes.get(at);
            boolean isDeterministic = true;
            scala.collection.Iterator expressions = node.expressions().iterator();
            while (expressions.hasNext()) {
                Expression expression = (Expression) expressions.next();
                isDeterministic &= expression.deterministic() && !isByOrder(expression);
            }
            isDeterministic &= !(node instanceof Aggregate) || areSame(((Aggregate) node).groupingExpressions());
            text.append(node.getClass().getName()).append(isDeterministic ? " 1 " : " 0 ");
            text.append(java.net.URLEncoder.encode(table(node), java.nio.charset.StandardCharsets.UTF_8));
            scala.collection.Iterator output = node.output().iterator();
            while (output.hasNext()) {
                text.append(' ').append(((Attribute) output.next()).exprId().id());
            }
            text.append('\n');
        }
        return text.toString();
    }

    private boolean isByOrder(Expression expression) {
        boolean isIt = expression instanceof Sum && overflowsToNull((Sum) expression)
            || (expression instanceof Max || expression instanceof Min)
                && (!isSame(expression) || isFloat(expression) && makesTextOfFloats());
        scala.collection.Iterator children = expression.children().iterator();
        while (!isIt && children.hasNext()) {
            isIt = isByOrder((Expression) children.next());
        }
        return isIt;
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

    private boolean makesTextOfFloats() {
        if (textOfFloats == null) {
            textOfFloats = Boolean.valueOf(someMakesTextOfFloats());
        }
        return textOfFloats.booleanValue();
    }

    private boolean someMakesTextOfFloats() {
        boolean found = false;
        for (int at = 0; at < nodes.size() && !found; at++) {
            scala.collection.Iterator expressions = ((LogicalPlan) nodes.get(at)).expressions().iterator();
            while (!found && expressions.hasNext()) {
                found = makesTextOfFloats((Expression) expressions.next());
            }
        }
        return found;
    }

    private static boolean makesTextOfFloats(Expression expression) {
        boolean found = expression instanceof Cast && expression.dataType() instanceof StringType
            && isFloat(((Cast) expression).child());
        scala.collection.Iterator children = expression.children().iterator();
        while (!found && children.hasNext()) {
            found = makesTextOfFloats((Expression) children.next());
        }
        return found;
    }

    private static boolean overflowsToNull(Sum sum) {
        Object mode = sum.evalContext().evalMode();
        boolean isWide = sum.child().dataType() instanceof DecimalType
            && ((DecimalType) sum.child().dataType()).precision() > DIGITS_OF_ANY_SUM;
        return mode.equals(EvalMode$.MODULE$.TRY()) || isWide && !mode.equals(EvalMode$.MODULE$.ANSI());
    }

    private static Join hinted(Join join, String side) {
        if (!join.hint().equals(JoinHint$.MODULE$.NONE())) {
            return join;
        }
        scala.Option nothing = scala.Option.empty();
        scala.Option broadcast = hint(BROADCAST$.MODULE$);
        scala.Option neither = hint(NO_BROADCAST_HASH$.MODULE$);
        JoinHint hint = side.equals("left") ? new JoinHint(broadcast, nothing)
            : side.equals("right") ? new JoinHint(nothing, broadcast) : new JoinHint(neither, neither);
        return new Join(join.left(), join.right(), join.joinType(), join.condition(), hint);
    }

    private static scala.Option hint(JoinStrategyHint strategy) {
        return scala.Option.apply(new HintInfo(scala.Option.apply(strategy)));
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
        if (leaf.relation() instanceof HadoopFsRelation) {
            scala.collection.Seq roots = ((HadoopFsRelation) leaf.relation()).location().rootPaths();
            return roots.isEmpty() ? "files" : ((org.apache.hadoop.fs.Path) roots.head()).getName();
        }
        return leaf.relation().getClass().getSimpleName();
    }
}
