import org.apache.spark.sql.classic.SparkSession;

/**
 * Confs that a session has set, several of them at once. One object serves a session.
 *
 * It relies on SQLConf.getAllConfs().
 */
public class SessionConfs {
    private final SparkSession session;

    public SessionConfs(SparkSession session) {
        this.session = session;
    }

    /**
     * The values of confs, whose names are separated by spaces: URL-encoded after an equals sign, nothing for a conf
     * that is not set, with spaces between them.
     */
    public String texts(String names) {
        scala.collection.immutable.Map all = session.sessionState().conf().getAllConfs();
        StringBuilder texts = new StringBuilder();
        java.util.StringTokenizer each = new java.util.StringTokenizer(names);
        while (each.hasMoreTokens()) {
            scala.Option found = all.get(each.nextToken());
            texts.append(texts.length() == 0 ? "" : " ").append(found.isDefined() ? "=" + encoded(found.get()) : "-");
        }
        return texts.toString();
    }

    /**
     * The confs whose names begin with a prefix: name and value in turn, URL-encoded, each after a space.
     */
    public String beginningWith(String prefix) {
        StringBuilder texts = new StringBuilder();
        scala.collection.Iterator each = session.sessionState().conf().getAllConfs().iterator();
        while (each.hasNext()) {
            scala.Tuple2 conf = (scala.Tuple2) each.next();
            if (((String) conf._1()).startsWith(prefix)) {
                texts.append(' ').append(encoded(conf._1())).append(' ').append(encoded(conf._2()));
            }
        }
        return texts.toString();
    }

    private static String encoded(Object text) {
        return java.net.URLEncoder.encode((String) text, java.nio.charset.StandardCharsets.UTF_8);
    }
}
