import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CachedData;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.LogicalRDD;

/**
 * Scans of a plan replaced by equal ones of cached queries, where Spark then answers from its cache.
 *
 * Spark compares functions of Python by identity. Rows that are read anew keep their own scan, so that they are
 * counted.
 *
 * It reads the private field CacheManager.cachedData by reflection, and relies on MapInArrow over LogicalRDD.
 */
public class CachedScans extends scala.runtime.AbstractPartialFunction {
    private final Dataset own;
    private final String prefix;
    private final java.util.Map cached = new java.util.HashMap();

    public CachedScans(Dataset own, String prefix) {
        this.own = own;
        this.prefix = prefix;
    }

    public Dataset found() throws Exception {
        CacheManager manager = own.sparkSession().sharedState().cacheManager();
        if (manager.isEmpty()) {
            return own;
        }
        java.lang.reflect.Field field = CacheManager.class.getDeclaredField("cachedData");
        field.setAccessible(true);
        scala.collection.Iterator entries = ((scala.collection.Iterable) field.get(manager)).iterator();
        Dataset found = own;
        while (found == own && entries.hasNext()) {
            cached.clear();
            learn(((CachedData) entries.next()).plan());
            found = with();
        }
        return found;
    }

    private Dataset with() {
        LogicalPlan plan = own.queryExecution().analyzed();
        LogicalPlan other = cached.isEmpty() ? plan : (LogicalPlan) plan.transformUpWithSubqueries(this);
        if (other == plan) {
            return own;
        }
        Dataset found = Dataset.ofRows((SparkSession) own.sparkSession(), other);
        return count(found.queryExecution().withCachedData()) < count(other) ? found : own;
    }

    public boolean isDefinedAt(Object node) {
        return true;
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
        MapInArrow found = isScan((LogicalPlan) node) ? (MapInArrow) cached.get(name((LogicalPlan) node)) : null;
        if (found == null) {
            return node;
        }
        MapInArrow scan = (MapInArrow) node;
        return new MapInArrow(found.functionExpr(), scan.output(), found.child(), scan.isBarrier(), scan.profile());
    }

    private void learn(LogicalPlan plan) {
        if (isScan(plan)) {
            cached.put(name(plan), plan);
        }
        scala.collection.Iterator plans = below(plan);
        while (plans.hasNext()) {
            learn((LogicalPlan) plans.next());
        }
    }

    private int count(LogicalPlan plan) {
        int sum = isScan(plan) ? 1 : 0;
        scala.collection.Iterator plans = below(plan);
        while (plans.hasNext()) {
            sum += count((LogicalPlan) plans.next());
        }
        return sum;
    }

    private static scala.collection.Iterator below(LogicalPlan plan) {
        java.util.ArrayList found = new java.util.ArrayList();
        add(found, plan.children().iterator());
        add(found, plan.subqueries().iterator());
        return scala.jdk.javaapi.CollectionConverters.asScala(found).iterator();
    }

    private static void add(java.util.List found, scala.collection.Iterator plans) {
        while (plans.hasNext()) {
            found.add(plans.next());
        }
    }

    private boolean isScan(LogicalPlan plan) {
        return plan instanceof MapInArrow && ((MapInArrow) plan).child() instanceof LogicalRDD
            && name(plan).startsWith(prefix);
    }

    private static String name(LogicalPlan scan) {
        return ((org.apache.spark.sql.catalyst.expressions.Attribute)
            ((MapInArrow) scan).child().output().head()).name();
    }
}
