"""Spark's optimised plan as an engine-free tree, read in a few calls whatever its size (classic sessions only).

One visit of Spark's optimised plan, which numbers its nodes, describes them, and may put others in their places.

Spark's own filters by the other side of a join, which an optimised plan already holds.

Whether a query may be pruned at all, by what is known before it is optimised: operators, and sizes of tables.

Whether somebody may ask for the file of a query's rows after the query itself: `input_file_name()` and the like.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from connectors.delta.file_index import optimised
from connectors.spark.files import has_jvm
from connectors.spark.jvm import instance, java_names
from connectors.spark.plan_tree import plan_tree
from connectors.spark.transfer import long_text
from pruning.errors import UnsupportedSessionError
from pruning.query.exchanges import Side
from pruning.query.plan import Node

_NONE_TOLD: Mapping[int, Side] = MappingProxyType({})
# What the names of all such expressions begin with.
_OPEN_FILE = "org.apache.spark.sql.catalyst.expressions.InputFile"
_REMOTE = (
    "Cannot prune a DataFrame of Spark Connect: found no JVM plan to read; name the keys and use pruned_read(), "
    "or use a classic session"
)


def check_has_plan(df: DataFrame) -> None:
    """Raises `UnsupportedSessionError` for a DataFrame of Spark Connect."""
    if not has_jvm(df.sparkSession):
        raise UnsupportedSessionError(_REMOTE)


@dataclass(frozen=True, slots=True, eq=False)
class SparkPlan:
    """The optimised plan of a query: `root` as a tree, and the JVM's own object of each of its nodes.

    `used` are the ids of the columns that some expression or the result uses, `partitions` of those by which Spark
    itself prunes partitions. `asks_for_files` says that some expression may be the name or a part of the file that
    Spark's reader has open.
    """

    spark: SparkSession
    root: Node
    used: frozenset[int]
    partitions: frozenset[int]
    asks_for_files: bool
    _first: Mapping[int, int]
    _visitor: Any
    _analyzed: Any

    @staticmethod
    def of(df: DataFrame) -> SparkPlan:
        """The plan of a DataFrame; `UnreadablePlanError` where it is not one tree."""
        spark = df.sparkSession
        analyzed: Any = df._jdf.queryExecution().analyzed()  # noqa: SLF001 - plans have no public door
        plan, partitions = without_spark_filters(spark, analyzed, optimised(df))
        visitor = plan_visitor(spark)
        plan.transformUpWithSubqueries(visitor)
        text, _, described = long_text(spark, visitor.texts(plan)).partition("\n")
        root, used = plan_tree(text, described)
        first = {node.at: node.first for node in root.walk()}
        return SparkPlan(spark, root, used, partitions, _OPEN_FILE in text, first, visitor, analyzed)

    def node(self, node: Node) -> Any:
        """The JVM's object of a node."""
        return self._visitor.node(node.at)

    def nodes(self, nodes: Iterable[Node]) -> Any:
        """The same for many nodes, as a list in the JVM."""
        return self._visitor.nodes(" ".join(str(node.at) for node in nodes))

    def may_be_asked_for_files(self) -> bool:
        """Whether somebody may ask for the file of the query's rows, whose expressions stand above this plan."""
        return may_be_asked_for_files(self.spark, self._analyzed)

    def replaced(self, below: Node, others: Mapping[int, Any], sides: Mapping[int, Side] = _NONE_TOLD) -> Any:
        """The JVM's plan of `below` with other nodes at the places that `others` names.

        Joins at the places of `sides` are told which side to broadcast, unless the query says so itself.
        """
        inside = {at: other for at, other in others.items() if below.first <= at <= below.at}
        # What another node stands for is gone with all that lies below it.
        gone = {at for top in inside for at in range(self._first[top], top)}
        inside = {at: other for at, other in inside.items() if at not in gone}
        left = {at for at in sides if below.first <= at <= below.at} - gone - inside.keys()
        told = {at: sides[at] for at in left}
        if not inside and not told:
            return self.node(below)
        visitor = plan_visitor(
            self.spark,
            {at - below.first: self._visitor.node(at) for at in inside},
            {at - below.first: other for at, other in inside.items()},
            {at - below.first: side.value for at, side in told.items()},
        )
        return self.node(below).transformUpWithSubqueries(visitor)


# Visits each node after its children and the plans of its subqueries, and may put others in their place.
# What depends on the order of rows, though the text of a plan does not show it: a sum that is NULL where it overflows,
# which of several equal texts stands for their group or is the greatest, and which zero, if it becomes a text.
# Spark's word for a hint that holds back hash joins alone is the one that leaves all other kinds of joins possible.
_VISITOR = "PlanVisitor"
_VISITOR_SOURCE = """
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
            return told((Join) node, (String) sides.get(at));
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
            text.append('\\n');
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

    private static Join told(Join join, String side) {
        if (!join.hint().equals(JoinHint$.MODULE$.NONE())) {
            return join;
        }
        scala.Option nothing = scala.Option.empty();
        scala.Option broadcast = hint(BROADCAST$.MODULE$);
        scala.Option held = hint(NO_BROADCAST_HASH$.MODULE$);
        JoinHint hint = side.equals("left") ? new JoinHint(broadcast, nothing)
            : side.equals("right") ? new JoinHint(nothing, broadcast) : new JoinHint(held, held);
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
"""


_NOTHING: Mapping[int, Any] = MappingProxyType({})


def plan_visitor(
    spark: SparkSession,
    expected: Mapping[int, Any] = _NOTHING,
    others: Mapping[int, Any] = _NOTHING,
    sides: Mapping[int, str] = _NOTHING,
) -> Any:
    """An object for `transformUpWithSubqueries`, which visits all nodes in one order; keys are their places in it.

    `others` take the places of the nodes that are `expected` there; `sides` of joins (`left`, `right`, `neither`) are
    told to be broadcast.
    """
    maps = [_java_map(spark, each) for each in (expected, others, sides)]
    return instance(spark, _VISITOR, _VISITOR_SOURCE, *maps)


def _java_map(spark: SparkSession, items: Mapping[int, Any]) -> Any:
    jvm = java_names(spark)
    made = jvm.java.util.HashMap()
    for at, item in items.items():
        made.put(at, item)
    return made


_REMOVER = "SparkFilterRemover"
_REMOVER_SOURCE = """
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BloomFilterMightContain;
import org.apache.spark.sql.catalyst.expressions.DynamicPruning;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;

public class SparkFilterRemover extends scala.runtime.AbstractPartialFunction {
    private final boolean hasOwnBlooms;
    private final StringBuilder columns = new StringBuilder();

    public SparkFilterRemover(LogicalPlan analyzed) {
        hasOwnBlooms = hasBloom(analyzed);
    }

    public boolean isDefinedAt(Object node) {
        return true;
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
        if (!(node instanceof Filter)) {
            return node;
        }
        Filter filter = (Filter) node;
        Expression rest = without(filter.condition());
        return rest == null ? filter.child() : rest == filter.condition() ? filter : new Filter(rest, filter.child());
    }

    public String columns() {
        return columns.toString();
    }

    private Expression without(Expression condition) {
        if (condition instanceof DynamicPruningSubquery) {
            scala.collection.Iterator names = ((DynamicPruningSubquery) condition).pruningKey().references().iterator();
            while (names.hasNext()) {
                columns.append(((Attribute) names.next()).exprId().id()).append(' ');
            }
        }
        if (condition instanceof DynamicPruning || !hasOwnBlooms && isBloom(condition)) {
            return null;
        }
        if (!(condition instanceof And)) {
            return condition;
        }
        And both = (And) condition;
        Expression left = without(both.left());
        Expression right = without(both.right());
        if (left == both.left() && right == both.right()) {
            return both;
        }
        return left == null ? right : right == null ? left : new And(left, right);
    }

    private static boolean isBloom(Expression condition) {
        boolean isBloom = condition instanceof BloomFilterMightContain;
        return isBloom && SubqueryExpression$.MODULE$.hasSubquery(condition);
    }

    private static boolean hasBloom(TreeNode node) {
        boolean isPlan = node instanceof LogicalPlan;
        return node instanceof BloomFilterMightContain || anyHasBloom(node.children())
            || isPlan && anyHasBloom(((LogicalPlan) node).expressions());
    }

    private static boolean anyHasBloom(scala.collection.Seq nodes) {
        scala.collection.Iterator rest = nodes.iterator();
        while (rest.hasNext()) {
            if (hasBloom((TreeNode) rest.next())) {
                return true;
            }
        }
        return false;
    }
}
"""


def without_spark_filters(spark: SparkSession, analyzed: Any, optimized: Any) -> tuple[Any, frozenset[int]]:
    """The optimised plan in the JVM before Spark pruned partitions and put bloom filters on scans: no row differs.

    With it the ids of the columns by which partitions were pruned. Bloom filters stay where the query has some itself.

    A plan is analysed and optimised again before it runs, and Spark adds such filters anew. It does not see that there
    are old ones: of a table that stands in a plan twice one side gets new column ids, which the plans inside the
    conditions for partitions keep, and bloom filters that were merged into one subquery cannot be merged again.
    """
    remover = instance(spark, _REMOVER, _REMOVER_SOURCE, analyzed)
    plan = optimized.transformUpWithSubqueries(remover)
    return plan, frozenset(map(int, str(remover.columns()).split()))


# Optimising a query that is left as it is would be paid twice. Without two inputs that meet, or a plan inside an
# expression, the optimiser makes no join, and without an order no limit takes first rows; and a scan has no more bytes
# than the files of its table. What a leaf reads that is not of a known kind is found out later. A size that is not at
# hand is not asked for: that may take a job.
_LOOK = "FirstLook"
_LOOK_SOURCE = """
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
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;

public class FirstLook {
    private final long least;
    private final boolean topK;
    private boolean filters = false;
    private boolean isLarge = false;

    public FirstLook(LogicalPlan plan, Number least, boolean topK) throws Exception {
        this.least = least.longValue();
        this.topK = topK;
        look(plan);
    }

    public boolean isWorthIt() {
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
        while (!isWorthIt() && plans.hasNext()) {
            look((LogicalPlan) plans.next());
        }
    }

    private static long bytes(LogicalPlan leaf) throws Exception {
        if (leaf instanceof LocalRelation || leaf instanceof OneRowRelation || leaf instanceof Range
            || leaf instanceof InMemoryRelation || leaf instanceof CTERelationRef) {
            return -1L;
        }
        boolean isOfFiles = leaf instanceof LogicalRelation
            && ((LogicalRelation) leaf).relation() instanceof HadoopFsRelation;
        return isOfFiles ? bytes(((HadoopFsRelation) ((LogicalRelation) leaf).relation()).location()) : Long.MAX_VALUE;
    }

    private static long bytes(FileIndex index) throws Exception {
        if (index instanceof PartitioningAwareFileIndex) {
            return index.sizeInBytes();
        }
        if (!index.getClass().getSimpleName().equals("TahoeLogFileIndex")) {
            return Long.MAX_VALUE;
        }
        Object version = called(index, "snapshotAtAnalysis");
        scala.Option size = (scala.Option) called(version, "sizeInBytesIfKnown");
        return size.isDefined() ? ((Long) size.get()).longValue() : Long.MAX_VALUE;
    }

    private static Object called(Object target, String method) throws Exception {
        return target.getClass().getMethod(method, new Class[0]).invoke(target, new Object[0]);
    }
}
"""


def is_candidate(spark: SparkSession, analyzed: Any, min_probe_bytes: int, *, top_k: bool) -> bool:
    """False where a query has no join, nor the first rows of an order with `top_k`, or no scan of as many bytes."""
    return bool(instance(spark, _LOOK, _LOOK_SOURCE, analyzed, min_probe_bytes, top_k).isWorthIt())


# Spark lets rows be asked for their file where they come from one source of files alone, of which the branches of a
# union may each have one, and refuses it for any other query; what cached rows were made of counts, and plans inside
# expressions do not. Its answer is empty above an aggregate: no file is open where groups are made. The same goes for
# the columns of `_metadata`, which no aggregate hands on.
_SOURCES = "FileSources"
_SOURCES_SOURCE = """
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Deduplicate;
import org.apache.spark.sql.catalyst.plans.logical.Distinct;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

public class FileSources {
    private static final int SEVERAL = 2;
    private final LogicalPlan plan;

    public FileSources(LogicalPlan plan) {
        this.plan = plan;
    }

    public boolean mayBeAskedFor() {
        return count(plan) < SEVERAL && isOpenAbove(plan);
    }

    private static boolean isSource(LogicalPlan plan) {
        return plan instanceof HiveTableRelation
            || plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation;
    }

    private static int count(LogicalPlan plan) {
        int sum = isSource(plan) ? 1 : 0;
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            int found = count((LogicalPlan) children.next());
            sum = plan instanceof Union ? Math.max(sum, found) : sum + found;
        }
        return sum;
    }

    private static boolean isOpenAbove(LogicalPlan plan) {
        if (plan instanceof Aggregate || plan instanceof Distinct || plan instanceof Deduplicate) {
            return false;
        }
        boolean isIt = isSource(plan);
        scala.collection.Iterator children = plan.children().iterator();
        while (!isIt && children.hasNext()) {
            isIt = isOpenAbove((LogicalPlan) children.next());
        }
        return isIt;
    }
}
"""


def may_be_asked_for_files(spark: SparkSession, analyzed: Any) -> bool:
    """Whether Spark would tell the file of rows of an analysed plan, if it read all files itself."""
    return bool(instance(spark, _SOURCES, _SOURCES_SOURCE, analyzed).mayBeAskedFor())
