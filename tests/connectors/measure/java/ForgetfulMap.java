import java.util.List;
import java.util.concurrent.ConcurrentHashMap;

/** A map that loses some of the entries put into it, by their order from 0. */
public class ForgetfulMap extends ConcurrentHashMap {
    private final List lost;
    private int puts = 0;

    public ForgetfulMap(List lost) {
        this.lost = lost;
    }

    public synchronized Object put(Object key, Object value) {
        boolean isLost = lost.contains(Integer.valueOf(puts++));
        return isLost ? null : super.put(key, value);
    }
}
