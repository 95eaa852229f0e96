/**
 * Long text or bytes, deflated, in pieces of base64 that each fit into one packet of py4j's bridge.
 *
 * It relies on nothing of Spark's.
 */
public class PackedText {
    private static final int MOST = 8000;
    private final String text;

    public PackedText(Object items) throws java.io.IOException {
        byte[] bytes = items instanceof java.io.ByteArrayOutputStream
            ? ((java.io.ByteArrayOutputStream) items).toByteArray() : joined((java.util.Collection) items);
        java.util.zip.Deflater fast = new java.util.zip.Deflater(java.util.zip.Deflater.BEST_SPEED);
        try {
            java.io.ByteArrayOutputStream packed = new java.io.ByteArrayOutputStream();
            java.util.zip.DeflaterOutputStream stream = new java.util.zip.DeflaterOutputStream(packed, fast);
            stream.write(bytes);
            stream.close();
            this.text = java.util.Base64.getEncoder().encodeToString(packed.toByteArray());
        } finally {
            fast.end();
        }
    }

    private static byte[] joined(java.util.Collection items) {
        StringBuilder all = new StringBuilder();
        java.util.Iterator rest = items.iterator();
        while (rest.hasNext()) {
            all.append(rest.next());
            if (rest.hasNext()) {
                all.append('\n');
            }
        }
        return all.toString().getBytes(java.nio.charset.StandardCharsets.UTF_8);
    }

    /**
     * The piece at a place from 0; the last one ends in a full stop.
     */
    public String piece(int at) {
        int end = Math.min((at + 1) * MOST, text.length());
        return text.substring(at * MOST, end) + (end == text.length() ? "." : "");
    }
}
