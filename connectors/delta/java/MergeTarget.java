import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.MonotonicallyIncreasingID;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.files.TahoeBatchFileIndex;
import org.apache.spark.sql.delta.metric.IncrementMetric;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.immutable.Seq;

/**
 * The target of a MERGE in an optimised plan of Delta: a scan of files that Delta chose, joined with the source.
 *
 * Where Delta looks for files with a match the join is inner, and where it inserts only, a left anti join whose right
 * side is the target. In both, a row of the target that matches no row of the source changes nothing, so files of such
 * rows alone need not be read. Row ids and names of files, which Delta computes above the scan, stay right: ids only
 * have to differ. Every other join needs all rows of the target; and while Delta writes, each file has a match.
 *
 * The source has to run as often as without pruning, since Delta counts its rows while they pass. Adaptive execution
 * drops it if the other side of an inner join turns out to have no row.
 *
 * It relies on Delta's TahoeBatchFileIndex and IncrementMetric.
 */
public class MergeTarget extends scala.runtime.AbstractPartialFunction {
    private final LogicalPlan plan;
    private final java.util.ArrayList path = new java.util.ArrayList();
    private final java.util.Map onPath = new java.util.IdentityHashMap();
    private String refusal = null;
    private boolean isNumbered = false;
    private LogicalRelation leaf = null;
    private Join join = null;
    private LogicalRelation listed = null;

    public MergeTarget(LogicalPlan plan) {
        this.plan = plan;
        find(plan);
        if (leaf != null) {
            check();
        }
    }

    /**
     * True if the plan has a scan of files that Delta chose.
     */
    public boolean isFound() {
        return leaf != null;
    }

    /**
     * Why no file of the target may be left out; null if some may.
     */
    public String refusal() {
        return refusal;
    }

    /**
     * The join, with a target whose files are listed and without the expressions that count rows or number them.
     */
    public LogicalPlan readable() {
        boolean isLeft = onPath.containsKey(join.left());
        java.util.ArrayList sides = new java.util.ArrayList();
        listed = listed();
        sides.add(isLeft ? target(join.left(), listed) : source(join.left()));
        sides.add(isLeft ? source(join.right()) : target(join.right(), listed));
        return (LogicalPlan) join.withNewChildren(PrunedFileIndex.sequence(sides));
    }

    /**
     * The scan of the target with listed files; null if its version is not known.
     */
    public LogicalRelation listed() {
        TahoeBatchFileIndex all = chosen(leaf);
        return !(all.snapshot() instanceof Snapshot) ? null : DeltaFileLists.over(leaf, new PrunedFileIndex(all,
            (Snapshot) all.snapshot(), scala.Option.empty(), all.addFiles(), all.sizeInBytes(),
            DeltaFileLists.noneKnown()));
    }

    public boolean isTarget(LogicalPlan node) {
        return node == listed;
    }

    /**
     * True if the source has to run, which a target without rows would spare.
     */
    public boolean isInner() {
        return join.joinType().equals(Inner$.MODULE$);
    }

    /**
     * The bytes of the files that Delta chose.
     */
    public long bytes() {
        return chosen(leaf).sizeInBytes();
    }

    /**
     * The number of the files that Delta chose.
     */
    public int files() {
        return chosen(leaf).addFiles().size();
    }

    /**
     * The plan of the rows of the files at these paths of the log that pass the filters of the target.
     */
    public LogicalPlan rows(String paths) {
        TahoeBatchFileIndex all = chosen(leaf);
        Seq some = at(paths, all);
        PrunedFileIndex index = new PrunedFileIndex(all, (Snapshot) all.snapshot(), scala.Option.empty(), some,
            all.sizeInBytes(), DeltaFileLists.noneKnown());
        LogicalPlan side = target((LogicalPlan) path.get(path.indexOf(join) - 1), DeltaFileLists.over(leaf, index));
        java.util.ArrayList conditions = new java.util.ArrayList();
        for (int at = 0; at < path.indexOf(join); at++) {
            if (path.get(at) instanceof Filter) {
                DeltaFileLists.split(((Filter) path.get(at)).condition(), conditions);
            }
        }
        for (int at = 0; at < conditions.size(); at++) {
            index.learn(conditions.get(at));
        }
        side.setAnalyzed();
        return side;
    }

    /**
     * The whole plan over the files at these paths of the log, with line feeds between them; its scan shows the text.
     */
    public LogicalPlan over(String paths, String text) {
        TahoeBatchFileIndex all = chosen(leaf);
        Seq fewer = at(paths, all);
        TahoeBatchFileIndex index = new TahoeBatchFileIndex(all.spark(), all.actionType(), fewer, all.deltaLog(),
            all.path(), all.snapshot(), all.partitionFiltersGenerated());
        return replaced(plan, DescribedLeaves.over(DeltaFileLists.over(leaf, index), text));
    }

    private static Seq at(String paths, TahoeBatchFileIndex all) {
        return PrunedFileIndex.at(new java.util.HashSet(java.util.Arrays.asList(paths.split("\n"))), all.addFiles());
    }

    private boolean find(LogicalPlan node) {
        boolean isAbove = false;
        scala.collection.Iterator children = node.children().iterator();
        while (children.hasNext()) {
            isAbove = find((LogicalPlan) children.next()) || isAbove;
        }
        if (chosen(node) != null) {
            refusal = leaf == null ? null : "the plan has two scans of files that Delta chose";
            leaf = (LogicalRelation) node;
            path.clear();
            onPath.clear();
        }
        if (node == leaf || isAbove) {
            path.add(node);
            onPath.put(node, node);
        }
        return node == leaf || isAbove;
    }

    private void check() {
        for (int at = 1; at < path.size() && refusal == null; at++) {
            LogicalPlan node = (LogicalPlan) path.get(at);
            if (node instanceof Join && join != null) {
                refusal = "it is joined twice";
            } else if (node instanceof Join) {
                join = (Join) node;
                checkJoin((LogicalPlan) path.get(at - 1));
            } else if (join == null) {
                checkBelow(node);
            }
        }
        if (refusal == null) {
            refusal = join == null ? "it is not joined" : null;
        }
        if (refusal == null && !(chosen(leaf).snapshot() instanceof Snapshot)) {
            refusal = "its version is not known";
        }
    }

    private void checkJoin(LogicalPlan target) {
        boolean isInsertOnly = join.joinType().equals(LeftAnti$.MODULE$) && target == join.right();
        if (!isInsertOnly && !isInner()) {
            refusal = "it is below a " + join.joinType() + " join";
        } else if (isInner() && !isNumbered) {
            refusal = "each of its files has a match";
        }
    }

    private void checkBelow(LogicalPlan node) {
        if (node instanceof Project) {
            scala.collection.Iterator columns = ((Project) node).projectList().iterator();
            while (columns.hasNext()) {
                Expression column = (Expression) columns.next();
                isNumbered = isNumbered || isOfDelta(column);
                refusal = column.deterministic() || isOfDelta(column) ? refusal : "it computes " + column.sql();
            }
        } else if (node instanceof Filter) {
            refusal = isOfSpark(((Filter) node).condition()) ? "Spark filters it by keys of the source" : refusal;
        } else {
            refusal = "it has a " + node.getClass().getSimpleName();
        }
    }

    /**
     * True for conditions that Spark makes of the other side of a join, which may leave no row of a file that stays.
     */
    private static boolean isOfSpark(Expression condition) {
        return SubqueryExpression$.MODULE$.hasSubquery(condition)
            || condition.toString().contains("might_contain");
    }

    private static boolean isOfDelta(Expression column) {
        Object made = column instanceof Alias ? ((Alias) column).child() : null;
        return made instanceof MonotonicallyIncreasingID || made instanceof InputFileName;
    }

    private LogicalPlan source(LogicalPlan side) {
        return (LogicalPlan) side.transformAllExpressions(this);
    }

    public boolean isDefinedAt(Object expression) {
        return expression instanceof IncrementMetric;
    }

    public Object applyOrElse(Object expression, scala.Function1 otherwise) {
        return isDefinedAt(expression) ? ((IncrementMetric) expression).child() : otherwise.apply(expression);
    }

    private LogicalPlan target(LogicalPlan node, LogicalRelation read) {
        if (node == leaf) {
            return read;
        }
        LogicalPlan child = target((LogicalPlan) node.children().head(), read);
        if (!(node instanceof Project)) {
            return (LogicalPlan) node.withNewChildren(PrunedFileIndex.sequence(
                java.util.Collections.singletonList(child)));
        }
        java.util.ArrayList columns = new java.util.ArrayList();
        scala.collection.Iterator each = ((Project) node).projectList().iterator();
        while (each.hasNext()) {
            NamedExpression column = (NamedExpression) each.next();
            columns.add(!isOfDelta((Expression) column) ? column
                : ((Alias) column).withNewChildren(PrunedFileIndex.sequence(java.util.Collections.singletonList(
                    Literal.create(null, ((Expression) column).dataType())))));
        }
        return new Project(PrunedFileIndex.sequence(columns), child);
    }

    private LogicalPlan replaced(LogicalPlan node, LogicalRelation fewer) {
        if (node == leaf) {
            return fewer;
        }
        if (!onPath.containsKey(node)) {
            return node;
        }
        java.util.ArrayList children = new java.util.ArrayList();
        scala.collection.Iterator each = node.children().iterator();
        while (each.hasNext()) {
            children.add(replaced((LogicalPlan) each.next(), fewer));
        }
        return (LogicalPlan) node.withNewChildren(PrunedFileIndex.sequence(children));
    }

    private static TahoeBatchFileIndex chosen(LogicalPlan node) {
        if (!(node instanceof LogicalRelation) || !(((LogicalRelation) node).relation() instanceof HadoopFsRelation)) {
            return null;
        }
        Object index = ((HadoopFsRelation) ((LogicalRelation) node).relation()).location();
        return index.getClass() == TahoeBatchFileIndex.class ? (TahoeBatchFileIndex) index : null;
    }
}
