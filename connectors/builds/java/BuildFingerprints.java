import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Fingerprints of the operators of several builds, and the leaves below them by file format, from the walks of
 * PlanFingerprint. It is made once for the builds of a query that run together; leaves are fingerprinted by connectors.
 *
 * It relies on SQLConf.getAllConfs() and sessionLocalTimeZone().
 */
public class BuildFingerprints {
    private final SparkSession session;
    private final java.util.ArrayList leaves = new java.util.ArrayList();

    public BuildFingerprints(SparkSession session) {
        this.session = session;
    }

    /**
     * The fingerprint of the session: with other confs, equal plans may give other rows. The confs noted, which are
     * separated by spaces, do not count.
     */
    public String session(String noted) throws Exception {
        FingerprintText text = new FingerprintText();
        text.add(session.sessionState().conf().sessionLocalTimeZone());
        scala.collection.immutable.MapOps confs = session.sessionState().conf().getAllConfs();
        String[] left = noted.split(" ");
        for (int at = 0; at < left.length; at++) {
            confs = confs.removed(left[at]);
        }
        text.add(confs);
        return text.digest();
    }

    /**
     * The fingerprint of the operators of a build and the file format of each of its leaves, separated by spaces; or,
     * after an exclamation mark, the reason why there is no fingerprint.
     */
    public String operators(LogicalPlan plan, Expression key) throws Exception {
        try {
            PlanFingerprint text = new PlanFingerprint();
            text.add(plan);
            text.add(key);
            StringBuilder found = new StringBuilder(text.digest());
            for (int at = 0; at < text.leaves().size(); at++) {
                found.append(' ').append(format(text.leaves().get(at)));
            }
            leaves.addAll(text.leaves());
            return found.toString();
        } catch (UnsupportedOperationException refused) {
            return "!" + refused.getMessage();
        }
    }

    /**
     * The leaves of all builds so far whose file format is one of formats, which are separated by spaces.
     */
    public java.util.List leaves(String formats) {
        java.util.List wanted = java.util.Arrays.asList(formats.split(" "));
        java.util.ArrayList found = new java.util.ArrayList();
        for (int at = 0; at < leaves.size(); at++) {
            if (wanted.contains(format(leaves.get(at)))) {
                found.add(leaves.get(at));
            }
        }
        return found;
    }

    private static String format(Object leaf) {
        HadoopFsRelation relation = (HadoopFsRelation) ((LogicalRelation) leaf).relation();
        String name = relation.fileFormat().getClass().getSimpleName();
        return name.isEmpty() ? relation.fileFormat().getClass().getName() : name;
    }
}
