/** Two arguments of a constructor, of which one is a primitive. */
public class TwoThings {
    private final String text;

    public TwoThings(Object one, int other) {
        text = one + " " + other;
    }

    public String toString() {
        return text;
    }
}
