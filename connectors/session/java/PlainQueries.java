/**
 * The queries that read files and have nothing to prune, which are not handed to Python.
 */
public class PlainQueries {
    private static final String BETWEEN_QUERIES = "\u0002";
    // So many queries are kept; Spark may plan one more than once, so as many executions are remembered.
    private final int most;
    private final java.util.ArrayDeque executions = new java.util.ArrayDeque();
    private final java.util.ArrayDeque origins = new java.util.ArrayDeque();

    PlainQueries(int most) {
        this.most = most;
    }

    /**
     * False for the query of an execution that is known; -1 for a query without one.
     */
    synchronized boolean isNew(long execution) {
        Long added = Long.valueOf(execution);
        if (execution < 0) {
            return true;
        }
        if (executions.contains(added)) {
            return false;
        }
        added(executions, added);
        return true;
    }

    synchronized void add(String origin) {
        added(origins, origin);
    }

    private void added(java.util.ArrayDeque several, Object one) {
        several.addLast(one);
        if (several.size() > most) {
            several.removeFirst();
        }
    }

    /**
     * The origins of the queries since the last call, at most those of a history, each with a mark behind it.
     */
    synchronized String taken() {
        StringBuilder found = new StringBuilder();
        while (!origins.isEmpty()) {
            found.append(origins.removeFirst()).append(BETWEEN_QUERIES);
        }
        return found.toString();
    }
}
