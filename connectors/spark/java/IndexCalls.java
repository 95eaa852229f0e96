import org.apache.spark.sql.execution.datasources.FileIndex;

/**
 * Calls of file indexes that connectors name, each by the simple name of a class and methods to call one after another.
 *
 * Calls are made by reflection, so that no class of a table format has to be on the classpath.
 */
public class IndexCalls {
    private final java.util.HashMap methods = new java.util.HashMap();

    public IndexCalls(String calls) {
        java.util.StringTokenizer each = new java.util.StringTokenizer(calls);
        while (each.hasMoreTokens()) {
            String[] names = each.nextToken().split("\\.");
            methods.put(names[0], java.util.Arrays.asList(names).subList(1, names.length));
        }
    }

    /**
     * The result of the last method; null for an index of which no connector names a call.
     */
    public Object result(FileIndex index) throws Exception {
        java.util.List names = (java.util.List) methods.get(index.getClass().getSimpleName());
        Object found = names == null ? null : index;
        for (int at = 0; names != null && at < names.size(); at++) {
            found = found.getClass().getMethod((String) names.get(at), new Class[0]).invoke(found, new Object[0]);
        }
        return found;
    }
}
