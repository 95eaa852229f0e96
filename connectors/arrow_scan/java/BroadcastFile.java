import java.lang.ref.Cleaner;

/**
 * Deletion of the file that Python wrote a broadcast to, once the broadcast is garbage.
 *
 * It relies on nothing of Spark's.
 */
public class BroadcastFile implements Runnable {
    private static final Cleaner CLEANER = Cleaner.create();
    private final String path;

    public BroadcastFile(String path) {
        this.path = path;
    }

    public void endsWith(Object broadcast) {
        CLEANER.register(broadcast, this);
    }

    public void run() {
        new java.io.File(path).delete();
    }
}
