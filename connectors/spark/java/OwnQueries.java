import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;

/**
 * Queries over an optimised plan of a session, which optimiser rules of users have met: they do not meet it again.
 *
 * It relies on the rules of ExperimentalMethods and SparkSessionExtensions, on SQLConf.withExistingConf(), and on
 * listListeners() of the session's ExecutionListenerManager.
 */
public class OwnQueries extends scala.runtime.AbstractFunction0 {
    private static final String EXCLUDED = "spark.sql.optimizer.excludedRules";
    // Rules of table formats, which give a scan its files, have their packages below that of Spark.
    private static final String SPARKS = "org.apache.spark.";
    /**
     * Rules that infer, copy or move conditions by joins. A plan that is optimised once has no join of an IN or EXISTS
     * when they run, and some joins are still outer ones.
     */
    static final String MOVES = String.join(",", new String[] {
        "org.apache.spark.sql.catalyst.optimizer.InferFiltersFromConstraints",
        "org.apache.spark.sql.catalyst.optimizer.PushExtraPredicateThroughJoin",
        "org.apache.spark.sql.catalyst.optimizer.PushDownLeftSemiAntiJoin",
        "org.apache.spark.sql.catalyst.optimizer.PushLeftSemiLeftAntiThroughJoin"});
    private static final java.util.List OURS =
        java.util.Arrays.asList(new Object[] {"SessionRule", "NewSessions$NoRule", "ListedScans"});
    private final SparkSession session;
    private Dataset frame;

    public OwnQueries(SparkSession session) {
        this.session = session;
    }

    /**
     * A session without listeners of queries and without the optimiser rules of users; the session itself if it has
     * neither. A clone has the confs of the moment, and the tags by which a user cancels jobs. It would copy the
     * artifacts of a session: one that has some is cloned for rules alone.
     */
    public SparkSession session() {
        String rules = excluded(session, "");
        boolean isHeard = session.listenerManager().listListeners().length > 0
            && !session.sessionState().artifactManager().artifactPath().toFile().exists();
        if (!isHeard && rules.isEmpty()) {
            return session;
        }
        SparkSession clone = session.cloneSession();
        clone.listenerManager().clear();
        if (!rules.isEmpty()) {
            clone.conf().set(EXCLUDED, rules);
        }
        return clone;
    }

    /**
     * The DataFrame of a plan, which the session has optimised without the rules of users; if some expression may raise
     * an error, also without those that move conditions, so that it meets no other rows.
     */
    public Dataset optimized(LogicalPlan plan, boolean mayRaise) {
        frame = Dataset.ofRows(session, plan);
        return (Dataset) withoutRules(session, mayRaise ? MOVES : "", this);
    }

    public Object apply() {
        frame.queryExecution().optimizedPlan();
        return frame;
    }

    /**
     * The result of a body that optimises without the rules of users, and without others, with commas between them.
     */
    static Object withoutRules(SparkSession session, String others, scala.Function0 body) {
        String rules = excluded(session, others);
        if (rules.isEmpty()) {
            return body.apply();
        }
        SQLConf conf = session.sessionState().conf().clone();
        conf.setConfString(EXCLUDED, rules);
        return SQLConf$.MODULE$.withExistingConf(conf, body);
    }

    /**
     * The rules that are not to run, with commas between them: those of users, others, and those of the session's conf;
     * empty if there are no others and no rule of a user.
     */
    private static String excluded(SparkSession session, String others) {
        java.util.LinkedHashSet names = new java.util.LinkedHashSet();
        if (!others.isEmpty()) {
            names.addAll(java.util.Arrays.asList(others.split(",")));
        }
        add(names, session.experimental().extraOptimizations());
        add(names, session.extensions().buildOptimizerRules(session));
        add(names, session.extensions().buildPreCBORules(session));
        String known = session.sessionState().conf().getConfString(EXCLUDED, "");
        if (!names.isEmpty() && !known.isEmpty()) {
            names.add(known);
        }
        return String.join(",", names);
    }

    private static void add(java.util.Set names, scala.collection.Seq rules) {
        scala.collection.Iterator each = rules.iterator();
        while (each.hasNext()) {
            String name = ((Rule) each.next()).ruleName();
            if (!name.startsWith(SPARKS) && !OURS.contains(name)) {
                names.add(name);
            }
        }
    }
}
