import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * What tells a query of a session from others: its execution and the outermost one around it, job group and tags of the
 * thread that plans it, and the tables that it reads, by name and by path.
 *
 * It relies on SQLExecution, on the property of the job group, and on the names that a session gives its tags.
 */
public class QueryOrigin {
    private static final String GROUP = "spark.jobGroup.id";
    private static final String OF_SESSION = "spark-session-";
    // A scan may have thousands of paths, as by a pattern.
    private static final int MOST_PATHS = 16;
    private static final String BETWEEN_FIELDS = "\u0000";
    private static final String BETWEEN_VALUES = "\u0001";

    private QueryOrigin() {}

    /**
     * The execution, the outermost execution, the job group, tags and tables; an unknown one is empty.
     */
    static String text(LogicalPlan plan, SparkSession session, long execution) {
        SparkContext context = session.sparkContext();
        StringBuilder found = new StringBuilder();
        // Without an execution of the query, the thread may carry that of another one.
        found.append(execution < 0 ? "" : String.valueOf(execution)).append(BETWEEN_FIELDS);
        found.append(execution < 0 ? "" : known(context.getLocalProperty(SQLExecution.EXECUTION_ROOT_ID_KEY())));
        found.append(BETWEEN_FIELDS).append(known(context.getLocalProperty(GROUP)));
        found.append(BETWEEN_FIELDS).append(joined(tags(session, context)));
        return found.append(BETWEEN_FIELDS).append(joined(tables(plan))).toString();
    }

    private static String known(String value) {
        return value == null ? "" : value;
    }

    private static String joined(java.util.Set values) {
        StringBuilder found = new StringBuilder();
        java.util.Iterator each = values.iterator();
        while (each.hasNext()) {
            found.append(found.length() == 0 ? "" : BETWEEN_VALUES).append(each.next());
        }
        return found.toString();
    }

    private static java.util.Set tags(SparkSession session, SparkContext context) {
        java.util.Set found = new java.util.TreeSet();
        add(session.getTags().iterator(), found, "");
        // The session gives its jobs longer names of its own tags.
        add(context.getJobTags().iterator(), found, OF_SESSION);
        return found;
    }

    private static void add(scala.collection.Iterator tags, java.util.Set found, String without) {
        while (tags.hasNext()) {
            String tag = (String) tags.next();
            if (without.isEmpty() || !tag.startsWith(without)) {
                found.add(tag);
            }
        }
    }

    private static java.util.Set tables(LogicalPlan plan) {
        java.util.Set found = new java.util.LinkedHashSet();
        lookAt(plan, found);
        return found;
    }

    private static void lookAt(LogicalPlan plan, java.util.Set found) {
        HadoopFsRelation files = FileScan.files(plan);
        if (files != null) {
            scala.Option table = ((LogicalRelation) plan).catalogTable();
            if (table.isDefined()) {
                found.add(((CatalogTable) table.get()).identifier().unquotedString());
            }
            scala.collection.Iterator paths = files.location().rootPaths().iterator();
            for (int at = 0; at < MOST_PATHS && paths.hasNext(); at++) {
                found.add(((Path) paths.next()).toString());
            }
        }
        lookAt(plan.children().iterator(), found);
        lookAt(plan.subqueries().iterator(), found);
    }

    private static void lookAt(scala.collection.Iterator plans, java.util.Set found) {
        while (plans.hasNext()) {
            lookAt((LogicalPlan) plans.next(), found);
        }
    }
}
