/**
 * The executions of the latest queries that read files and have nothing to prune, which are not handed to Python.
 */
public class PlainQueries {
    private final int most;
    private final java.util.ArrayDeque executions = new java.util.ArrayDeque();

    PlainQueries(int most) {
        this.most = most;
    }

    synchronized void add(long execution) {
        Long added = Long.valueOf(execution);
        if (execution >= 0 && executions.contains(added)) {
            return;
        }
        executions.addLast(added);
        if (executions.size() > most) {
            executions.removeFirst();
        }
    }

    /**
     * Their ids, oldest first, with spaces between them; -1 where there is none. The next call gives later ones only.
     */
    public synchronized String taken() {
        StringBuilder text = new StringBuilder();
        while (!executions.isEmpty()) {
            text.append(executions.removeFirst()).append(' ');
        }
        return text.toString();
    }
}
