import org.apache.spark.SparkContext;
import org.apache.spark.sql.hive.thriftserver.ui.HiveThriftServer2EventManager;

/**
 * The events of a Thrift server, of which the start of a session also gives its thread a class loader that has the jars
 * of Spark's packages.
 *
 * Hive opens a session with a class loader that has Spark's own jars alone. Spark then plans the first statement in the
 * same thread, for which it needs the classes of the session's catalogs; later statements it gives the right loader.
 *
 * It relies on HiveThriftServer2EventManager.
 */
public class ThriftSessions extends HiveThriftServer2EventManager {
    private final ClassLoader loader;

    public ThriftSessions(SparkContext context, ClassLoader loader) {
        super(context);
        this.loader = loader;
    }

    public void onSessionCreated(String address, String session, String user) {
        Thread.currentThread().setContextClassLoader(loader);
        super.onSessionCreated(address, session, user);
    }
}
