import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.LogicalRDD;

/**
 * The optimised plan of a query: one walk over it numbers all nodes and describes them, and everything that is asked
 * about a node later names it by its number, which is its place in the order of PlanVisitor.
 *
 * Spark's own runtime filters are removed before the walk, by SparkFilterRemover. The text of the plan has three parts,
 * with line feeds between them: the ids of the columns by which Spark prunes partitions, the plan as JSON by Spark
 * itself, and NodeLines. It is handed out in pieces that are packed by PackedText.
 *
 * It relies on LogicalPlan.toJSON(), canonicalized() and setAnalyzed().
 */
public class OptimizedPlan extends PlanVisitor {
    private final AnalyzedPlan analyzed;
    private final java.util.ArrayList nodes = new java.util.ArrayList();
    private final java.util.HashMap others = new java.util.HashMap();
    private final NodeLines lines = new NodeLines();
    private final PackedText text;

    public OptimizedPlan(LogicalPlan analyzed, LogicalPlan optimized) throws java.io.IOException {
        this.analyzed = new AnalyzedPlan(analyzed);
        SparkFilterRemover remover = new SparkFilterRemover(this.analyzed);
        LogicalPlan plan = remover.visitAll(optimized);
        // So that no part of it is analysed again: Spark's optimiser makes nodes that the checks of its analyser
        // refuse, such as Python functions that are not deterministic.
        plan.setAnalyzed();
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

    /**
     * Facts that need more than one node, in two lines: LeafFacts of the leaves, each with the filters
     * above it; and equalNodes() of nodes that may be equal. Nodes are given by their places.
     */
    public String facts(String leavesAndFilters, String alike, String formats, String snapshotCalls) throws Exception {
        String leaves = new LeafFacts(formats, snapshotCalls).text(nodes(leavesAndFilters));
        return leaves + "\n" + equalNodes(nodes(alike));
    }

    /**
     * For each node the number in the list of the first node that is equal to it, or, after an exclamation mark, the
     * reason why it is unknown. Spark finds parts of a query that it runs once by the same form of a plan.
     */
    private static String equalNodes(java.util.List alike) {
        java.util.HashMap seen = new java.util.HashMap();
        StringBuilder words = new StringBuilder();
        try {
            for (int at = 0; at < alike.size(); at++) {
                Object plan = ((LogicalPlan) alike.get(at)).canonicalized();
                seen.putIfAbsent(plan, Integer.valueOf(at));
                words.append(seen.get(plan)).append(' ');
            }
        } catch (Throwable unknown) {
            return "!" + unknown;
        }
        return words.toString();
    }

    private java.util.List nodes(String places) {
        java.util.ArrayList found = new java.util.ArrayList();
        java.util.StringTokenizer rest = new java.util.StringTokenizer(places);
        while (rest.hasMoreTokens()) {
            found.add(nodes.get(Integer.parseInt(rest.nextToken())));
        }
        return found;
    }

    /**
     * The bytes of the rows of each node by Spark's own estimate, and of an RDD by RddRows, with spaces between them.
     */
    public String bytes(String places) {
        StringBuilder words = new StringBuilder();
        java.util.List asked = nodes(places);
        for (int at = 0; at < asked.size(); at++) {
            LogicalPlan node = (LogicalPlan) asked.get(at);
            words.append(node instanceof LogicalRDD ? new RddRows((LogicalRDD) node).bytes()
                : node.stats().sizeInBytes()).append(' ');
        }
        return words.toString();
    }

    /**
     * The places of the scans of files that are the rows of a micro-batch, separated by spaces.
     */
    public String streams() {
        StringBuilder words = new StringBuilder();
        for (int at = 0; at < nodes.size(); at++) {
            LogicalPlan node = (LogicalPlan) nodes.get(at);
            if (node.isStreaming() && FileScan.files(node) != null) {
                words.append(at).append(' ');
            }
        }
        return words.toString();
    }

    /**
     * The column of a node at a place of its output.
     */
    public Object column(int at, int place) {
        return node(at).output().apply(place);
    }

    /**
     * Takes a plan that may replace the node at a place.
     */
    public void give(int at, LogicalPlan other) {
        others.put(Integer.valueOf(at), other);
    }

    /**
     * Drops the plans that were given: they may hold the rows of builds.
     */
    public void forget() {
        others.clear();
    }

    /**
     * The part of the plan from the lowest node at place first to its top node, rewritten by NodeReplacer with the
     * plans that were given for some places.
     */
    public LogicalPlan replaced(int first, int top, String places, String sides) {
        java.util.HashMap chosen = new java.util.HashMap();
        java.util.StringTokenizer each = new java.util.StringTokenizer(places);
        while (each.hasMoreTokens()) {
            Integer at = Integer.valueOf(each.nextToken());
            chosen.put(at, others.get(at));
        }
        LogicalPlan found = new NodeReplacer(nodes, first, chosen, sides).visitAll(node(top));
        found.setAnalyzed();
        return found;
    }
}
