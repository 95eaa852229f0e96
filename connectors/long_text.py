"""Long text and bytes from the JVM, in pieces that each fit into one packet of the bridge.

py4j sends an answer of more than 8 KB as several small writes without TCP_NODELAY: each such answer waits some 40 ms
for an acknowledgement that the other side holds back. Packed, the text of a plan is a handful of short answers.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

from pyspark.sql import SparkSession

from connectors.compiled import instance

_PACKED = "PackedText"
_PACKED_SOURCE = """
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
                all.append('\\n');
            }
        }
        return all.toString().getBytes(java.nio.charset.StandardCharsets.UTF_8);
    }

    public int pieces() {
        return (text.length() + MOST - 1) / MOST;
    }

    public String piece(int at) {
        return text.substring(at * MOST, Math.min((at + 1) * MOST, text.length()));
    }
}
"""


def long_text(spark: SparkSession, lines: Any) -> str:
    """The elements of a collection in the JVM as text, with a line feed between them."""
    return _bytes_of(spark, lines).decode()


def long_bytes(spark: SparkSession, stream: Any) -> bytes:
    """What was written to a `ByteArrayOutputStream` in the JVM."""
    return _bytes_of(spark, stream)


def _bytes_of(spark: SparkSession, items: Any) -> bytes:
    packed = instance(spark, _PACKED, _PACKED_SOURCE, items)
    pieces = "".join(packed.piece(at) for at in range(packed.pieces()))
    return zlib.decompress(base64.b64decode(pieces))
