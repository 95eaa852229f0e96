import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * The optimised plan of a query: one walk over it numbers all nodes and describes them, and everything that is asked
 * about a node later names it by its number, which is its place in the order of PlanVisitor.
 *
 * Spark's own runtime filters are removed before the walk, by SparkFilterRemover. The text of the plan has three parts,
 * with line feeds between them: the ids of the columns by which Spark prunes partitions, the plan as JSON by Spark
 * itself, and NodeLines. It is handed out in pieces that are packed by PackedText.
 *
 * It relies on LogicalPlan.toJSON().
 */
public class OptimizedPlan extends PlanVisitor {
    private final java.util.ArrayList nodes = new java.util.ArrayList();
    private final NodeLines lines = new NodeLines();
    private final PackedText text;

    public OptimizedPlan(LogicalPlan analyzed, LogicalPlan optimized) throws java.io.IOException {
        SparkFilterRemover remover = new SparkFilterRemover(new AnalyzedPlan(analyzed));
        LogicalPlan plan = remover.visitAll(optimized);
        visitAll(plan);
        text = new PackedText(
            java.util.Arrays.asList(new Object[] {remover.columns(), plan.toJSON(), lines.text()}));
    }

    LogicalPlan visit(int at, LogicalPlan node) {
        nodes.add(node);
        lines.add(node);
        return node;
    }

    public String piece(int at) {
        return text.piece(at);
    }

    public LogicalPlan node(int at) {
        return (LogicalPlan) nodes.get(at);
    }

    public java.util.List nodes(String places) {
        java.util.ArrayList found = new java.util.ArrayList();
        java.util.StringTokenizer rest = new java.util.StringTokenizer(places);
        while (rest.hasMoreTokens()) {
            found.add(nodes.get(Integer.parseInt(rest.nextToken())));
        }
        return found;
    }

    /**
     * The bytes of the rows of a node by Spark's own estimate.
     */
    public String bytes(int at) {
        return node(at).stats().sizeInBytes().toString();
    }

    /**
     * The part of the plan from the lowest node at place first to its top node, rewritten by NodeReplacer.
     */
    public LogicalPlan replaced(int first, int top, java.util.Map others, String sides) {
        return new NodeReplacer(nodes, first, others, sides).visitAll(node(top));
    }
}
