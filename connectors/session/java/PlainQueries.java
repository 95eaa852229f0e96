/**
 * Counts the queries that read files and have nothing to prune, which are not handed to Python.
 */
public class PlainQueries {
    // Spark may plan a query more than once; so many executions are remembered.
    private final int most;
    private final java.util.ArrayDeque executions = new java.util.ArrayDeque();
    private int count = 0;

    PlainQueries(int most) {
        this.most = most;
    }

    /**
     * False for the query of an execution that is counted; -1 for a query without one.
     */
    synchronized boolean add(long execution) {
        Long added = Long.valueOf(execution);
        if (execution >= 0 && executions.contains(added)) {
            return false;
        }
        if (execution >= 0) {
            executions.addLast(added);
            if (executions.size() > most) {
                executions.removeFirst();
            }
        }
        count = Math.min(count + 1, most);
        return true;
    }

    /**
     * The number of queries since the last call, at most those of a history.
     */
    synchronized int taken() {
        int found = count;
        count = 0;
        return found;
    }
}
