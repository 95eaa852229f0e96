import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Text of values of Spark, Scala and Java that is equal only for equal values, and its SHA-256 digest.
 *
 * Each value is written with its kind and its length, so no value runs into the next one. A value of an unknown class
 * is refused by an UnsupportedOperationException, whose message is a sentence about the plan ("it holds a ...").
 *
 * It relies on DataType.json() and sql(), of which the first leaves out collations and the second metadata.
 */
public class FingerprintText {
    private static final int MOST_CHARACTERS = 1 << 20;
    private StringBuilder text = new StringBuilder();

    public String digest() throws Exception {
        // Two bytes for each character, since an encoder would replace invalid Unicode.
        java.nio.ByteBuffer bytes = java.nio.ByteBuffer.allocate(2 * text.length());
        bytes.asCharBuffer().put(text.toString());
        java.security.MessageDigest digest = java.security.MessageDigest.getInstance("SHA-256");
        return java.util.Base64.getEncoder().encodeToString(digest.digest(bytes.array()));
    }

    public void add(Object item) throws Exception {
        if (item == null) {
            write("null", "");
        } else if (item instanceof DataType) {
            write("type", ((DataType) item).json() + ((DataType) item).sql());
        } else if (item instanceof Metadata) {
            write("metadata", ((Metadata) item).json());
        } else if (!addMany(item) && !addValue(item)) {
            addOther(item);
        }
    }

    public void addOther(Object item) throws Exception {
        throw new UnsupportedOperationException("it holds a " + item.getClass().getSimpleName());
    }

    private boolean addMany(Object item) throws Exception {
        if (item instanceof scala.collection.Map || item instanceof scala.collection.Set) {
            addSorted(((scala.collection.Iterable) item).iterator());
        } else if (item instanceof scala.Option) {
            addAll("option", ((scala.Option) item).iterator());
        } else if (item instanceof scala.collection.Seq) {
            addAll("seq", ((scala.collection.Seq) item).iterator());
        } else if (item instanceof scala.Tuple2) {
            addAll("pair", ((scala.Tuple2) item).productIterator());
        } else if (item instanceof java.util.List) {
            addAll("list", scala.jdk.javaapi.CollectionConverters.asScala(((java.util.List) item).iterator()));
        } else {
            return false;
        }
        return true;
    }

    private boolean addValue(Object item) throws Exception {
        String kind = item.getClass().getName();
        if (item instanceof Boolean || item instanceof Number || item instanceof String || item instanceof Decimal
            || item instanceof scala.Enumeration.Value) {
            write(kind, item.toString());
        } else if (item instanceof UTF8String) {
            write(kind, latin(((UTF8String) item).getBytes()));
        } else if (item instanceof byte[]) {
            write(kind, latin((byte[]) item));
        } else if (item instanceof UnsafeRow) {
            write(kind, latin(((UnsafeRow) item).getBytes()));
        } else {
            return false;
        }
        return true;
    }

    public void addAll(String kind, scala.collection.Iterator items) throws Exception {
        text.append(kind).append('(');
        while (items.hasNext()) {
            add(items.next());
        }
        text.append(')');
    }

    private void addSorted(scala.collection.Iterator items) throws Exception {
        StringBuilder whole = text;
        java.util.TreeSet sorted = new java.util.TreeSet();
        while (items.hasNext()) {
            text = new StringBuilder();
            add(items.next());
            sorted.add(text.toString());
        }
        text = whole;
        addAll("set", scala.jdk.javaapi.CollectionConverters.asScala(sorted.iterator()));
    }

    public void write(String kind, String value) {
        text.append(kind).append(' ').append(value.length()).append(':').append(value);
        if (text.length() > MOST_CHARACTERS) {
            throw new UnsupportedOperationException("its plan takes more than " + MOST_CHARACTERS + " characters");
        }
    }

    private static String latin(byte[] bytes) {
        return new String(bytes, java.nio.charset.StandardCharsets.ISO_8859_1);
    }
}
