import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Adds the rule of an enabled session to the sessions that start beside it, as those of the clients of a server.
 *
 * Spark asks it for a rule whenever it makes the list of the rules of an optimiser, before it reads the rules that were
 * added to the session; so it adds the rule there, in time for the first query, and gives a rule that does nothing.
 * Spark has no way to take it back: once the session is disabled, it adds nothing.
 *
 * It relies on SparkSessionExtensions and ExperimentalMethods.
 */
public class NewSessions extends scala.runtime.AbstractFunction1 {
    private final SessionRule rule;

    NewSessions(SessionRule rule) {
        this.rule = rule;
    }

    public Object apply(Object session) {
        if (rule.isOn()) {
            add(((SparkSession) session).experimental());
        }
        return new NoRule();
    }

    private void add(ExperimentalMethods methods) {
        synchronized (methods) {
            if (!methods.extraOptimizations().contains(rule)) {
                methods.extraOptimizations_$eq(
                    (scala.collection.immutable.Seq) methods.extraOptimizations().appended(rule));
            }
        }
    }

    /**
     * A rule that leaves every plan as it is.
     */
    public static class NoRule extends Rule {
        public TreeNode apply(TreeNode plan) {
            return plan;
        }
    }
}
