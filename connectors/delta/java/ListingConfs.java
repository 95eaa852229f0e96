import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;

/**
 * The confs by which Delta lists files, as a digest: they decide how conditions are evaluated on partitions and
 * statistics, and which of these count.
 *
 * It relies on SQLConf.
 */
public class ListingConfs {
    // A commit of the session sets the first, which no list depends on, nor on those of pruning.
    private static final String LAST_COMMIT = "spark.databricks.delta.lastCommitVersionInSession";
    private static final String PRUNING = "spark.pruning.";

    private ListingConfs() {}

    static String digest(SparkSession session) {
        SQLConf own = session.sessionState().conf();
        SQLConf ofThread = SQLConf$.MODULE$.get();
        StringBuilder text = new StringBuilder(java.util.TimeZone.getDefault().getID());
        text.append('\0').append(own.sessionLocalTimeZone());
        add(own, text);
        if (ofThread != own) {
            add(ofThread, text);
        }
        try {
            byte[] bytes = text.toString().getBytes(java.nio.charset.StandardCharsets.UTF_8);
            return new java.math.BigInteger(java.security.MessageDigest.getInstance("SHA-256").digest(bytes))
                .toString(Character.MAX_RADIX);
        } catch (java.security.NoSuchAlgorithmException none) {
            return text.toString();
        }
    }

    private static void add(SQLConf conf, StringBuilder text) {
        java.util.TreeMap sorted =
            new java.util.TreeMap(scala.jdk.javaapi.CollectionConverters.asJava(conf.getAllConfs()));
        java.util.Iterator each = sorted.entrySet().iterator();
        while (each.hasNext()) {
            java.util.Map.Entry entry = (java.util.Map.Entry) each.next();
            String name = (String) entry.getKey();
            if (!name.equals(LAST_COMMIT) && !name.startsWith(PRUNING)) {
                text.append('\0').append(name).append('\0').append(entry.getValue());
            }
        }
    }
}
