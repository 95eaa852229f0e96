import org.apache.spark.sql.catalyst.plans.logical.BROADCAST$;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint$;
import org.apache.spark.sql.catalyst.plans.logical.JoinStrategyHint;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.NO_BROADCAST_HASH$;

/**
 * Rewrite of the plan that OptimizedPlan has read, or of a part of it, for a build or for the pruned query: nodes at
 * some places are replaced, and joins at others get a broadcast hint, unless the query has a hint there.
 *
 * It stops where the node at a place is not the node that OptimizedPlan read there.
 *
 * It relies on JoinHint and HintInfo. NO_BROADCAST_HASH is the hint that rules out broadcast hash joins alone and
 * leaves all other kinds of joins possible.
 */
public class NodeReplacer extends PlanVisitor {
    private final java.util.List read;
    private final java.util.Map others;
    private final java.util.Map sides = new java.util.HashMap();
    private final int first;

    /**
     * The list read has the nodes of the whole plan, and first is the lowest place in the part that is rewritten. Nodes
     * in others replace those at their places; sides has pairs of a place and left, right or neither.
     */
    NodeReplacer(java.util.List read, int first, java.util.Map others, String sides) {
        this.read = read;
        this.first = first;
        this.others = others;
        java.util.StringTokenizer words = new java.util.StringTokenizer(sides);
        while (words.hasMoreTokens()) {
            this.sides.put(Integer.valueOf(words.nextToken()), words.nextToken());
        }
    }

    LogicalPlan visit(int visited, LogicalPlan node) {
        Integer at = Integer.valueOf(first + visited);
        if (sides.containsKey(at)) {
            return hinted((Join) node, (String) sides.get(at));
        }
        if (!others.containsKey(at)) {
            return node;
        }
        if (read.get(at.intValue()) != node) {
            throw new IllegalStateException("node " + at + " of the plan is another one than was read");
        }
        return (LogicalPlan) others.get(at);
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
}
