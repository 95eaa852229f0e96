import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.NamedLambdaVariable;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.unsafe.types.VariantVal;

/**
 * Bytes that are equal only for builds that give the same rows, whatever query they stand in.
 *
 * A plan whose arguments do not tell its rows is refused: bytes() then begins with an exclamation mark and the reason.
 *
 * It relies on the rule that TreeNode.productIterator() gives all constructor arguments of a node, on the names of file
 * indexes and formats, and reads versions, metadata and files of Delta's indexes by reflection.
 */
public class PlanFingerprint {
    private static final int MOST_BYTES = 1 << 20;
    private static final int MOST_FILES = 32;
    private static final String SQL = "org.apache.spark.sql.";
    private static final String PREPARED_INDEX = SQL + "delta.stats.PreparedDeltaFileIndex";
    private static final String PRUNED_INDEX = "PrunedFileIndex";
    private static final String PINNED_INDEX = "PinnedFileIndex";
    private static final java.util.List BY_ORDER = java.util.Arrays.asList(
        new Object[] {"GlobalLimit", "LocalLimit", "Offset", "Tail", "Sample"});
    private final SparkSession session;
    private final long settled;
    private final java.util.HashMap ids = new java.util.HashMap();
    private final java.util.ArrayList files = new java.util.ArrayList();
    private final java.util.ArrayList confs = new java.util.ArrayList();
    private java.io.ByteArrayOutputStream bytes = new java.io.ByteArrayOutputStream();
    private java.io.DataOutputStream out = new java.io.DataOutputStream(bytes);

    public PlanFingerprint(SparkSession session, LogicalPlan plan, Expression key, long settled) throws Exception {
        this.session = session;
        this.settled = settled;
        try {
            if (plan == null) {
                add(session.sessionState().conf().sessionLocalTimeZone());
                add(session.sessionState().conf().getAllConfs());
                return;
            }
            add(plan);
            add(key);
            String why = unsettled();
            if (!why.isEmpty()) {
                throw new UnsupportedOperationException(why);
            }
        } catch (UnsupportedOperationException refused) {
            bytes = new java.io.ByteArrayOutputStream();
            bytes.write(("!" + refused.getMessage()).getBytes(java.nio.charset.StandardCharsets.UTF_8));
        }
    }

    public java.io.ByteArrayOutputStream bytes() {
        return bytes;
    }

    public String unsettled() throws java.io.IOException {
        for (int at = 0; at < files.size(); at++) {
            FileStatus listed = (FileStatus) files.get(at);
            try {
                org.apache.hadoop.fs.FileSystem system = listed.getPath().getFileSystem(
                    (org.apache.hadoop.conf.Configuration) confs.get(at));
                FileStatus found = system.getFileStatus(listed.getPath());
                if (found.getLen() != listed.getLen()
                    || found.getModificationTime() != listed.getModificationTime()) {
                    return "a file of it is not the one that was listed";
                }
            } catch (java.io.FileNotFoundException gone) {
                return "a file of it is gone";
            }
            long age = System.currentTimeMillis() - listed.getModificationTime();
            if (age < settled || listed.getModificationTime() <= 0) {
                return "a file of it was written less than " + settled / 1000 + " seconds ago";
            }
        }
        return "";
    }

    private void add(Object item) throws Exception {
        if (bytes.size() > MOST_BYTES) {
            throw new UnsupportedOperationException("its plan takes more than " + MOST_BYTES + " bytes");
        }
        if (item == null) {
            out.writeByte('0');
        } else if (item instanceof TreeNode) {
            addNode((TreeNode) item);
        } else if (item instanceof DataType) {
            addType((DataType) item);
        } else if (item instanceof ExprId) {
            addId((ExprId) item);
        } else if (item instanceof Metadata) {
            out.writeByte('m');
            addText(((Metadata) item).json());
        } else if (item instanceof org.apache.spark.QueryContext) {
            out.writeByte('x');
        } else if (item instanceof scala.Enumeration.Value) {
            out.writeByte('e');
            out.writeInt(((scala.Enumeration.Value) item).id());
            addText(item.toString());
        } else if (!addPlain(item) && !addValue(item) && !addMany(item)) {
            addProduct(item);
        }
    }

    private boolean addPlain(Object item) throws Exception {
        if (item instanceof Boolean) {
            out.writeByte(((Boolean) item).booleanValue() ? 'T' : 'F');
        } else if (item instanceof Byte) {
            out.writeByte('b');
            out.writeByte(((Byte) item).byteValue());
        } else if (item instanceof Short) {
            out.writeByte('s');
            out.writeShort(((Short) item).shortValue());
        } else if (item instanceof Integer) {
            out.writeByte('i');
            out.writeInt(((Integer) item).intValue());
        } else if (item instanceof Long) {
            out.writeByte('l');
            out.writeLong(((Long) item).longValue());
        } else if (item instanceof Float) {
            out.writeByte('f');
            out.writeInt(Float.floatToRawIntBits(((Float) item).floatValue()));
        } else if (item instanceof Double) {
            out.writeByte('d');
            out.writeLong(Double.doubleToRawLongBits(((Double) item).doubleValue()));
        } else if (item instanceof String) {
            out.writeByte('t');
            addText((String) item);
        } else if (item instanceof Class && isSparks((Class) item)) {
            out.writeByte('K');
            addText(((Class) item).getName());
        } else {
            return false;
        }
        return true;
    }

    private boolean addValue(Object item) throws Exception {
        if (item instanceof UTF8String) {
            addBytes('u', ((UTF8String) item).getBytes());
        } else if (item instanceof byte[]) {
            addBytes('y', (byte[]) item);
        } else if (item instanceof Decimal) {
            Decimal number = (Decimal) item;
            out.writeByte('c');
            out.writeInt(number.precision());
            out.writeInt(number.scale());
            addText(number.toJavaBigDecimal().toString());
        } else if (item instanceof CalendarInterval) {
            out.writeByte('v');
            out.writeInt(((CalendarInterval) item).months);
            out.writeInt(((CalendarInterval) item).days);
            out.writeLong(((CalendarInterval) item).microseconds);
        } else if (item instanceof VariantVal) {
            addBytes('a', ((VariantVal) item).getMetadata());
            addBytes('a', ((VariantVal) item).getValue());
        } else if (item instanceof UnsafeRow) {
            addBytes('r', ((UnsafeRow) item).getBytes());
        } else if (item instanceof GenericInternalRow) {
            addAll('g', java.util.Arrays.asList(((GenericInternalRow) item).values()));
        } else if (item instanceof GenericArrayData) {
            addAll('h', java.util.Arrays.asList(((GenericArrayData) item).array()));
        } else if (item instanceof InternalRow || item instanceof ArrayData || item instanceof MapData) {
            throw new UnsupportedOperationException("it holds a " + item.getClass().getSimpleName());
        } else {
            return false;
        }
        return true;
    }

    private boolean addMany(Object item) throws Exception {
        if (item instanceof scala.Option) {
            out.writeByte(((scala.Option) item).isEmpty() ? 'n' : 'o');
            if (((scala.Option) item).isDefined()) {
                add(((scala.Option) item).get());
            }
        } else if (item instanceof scala.collection.Map) {
            addSorted('k', ((scala.collection.Map) item).iterator());
        } else if (item instanceof scala.collection.Set) {
            addSorted('w', ((scala.collection.Set) item).iterator());
        } else if (item instanceof scala.collection.Seq) {
            addAll('q', list(((scala.collection.Seq) item).iterator()));
        } else if (item instanceof Object[]) {
            addAll('j', java.util.Arrays.asList((Object[]) item));
        } else {
            return false;
        }
        return true;
    }

    private void addProduct(Object item) throws Exception {
        String name = item.getClass().getName();
        boolean isKnown = name.startsWith(SQL + "catalyst.") || name.startsWith(SQL + "internal.")
            || name.startsWith(SQL + "types.") || name.startsWith(SQL + "delta.actions.")
            || name.startsWith("scala.Tuple");
        if (!isKnown || !(item instanceof scala.Product)) {
            throw new UnsupportedOperationException("it holds a " + item.getClass().getSimpleName());
        }
        out.writeByte('p');
        addText(name);
        addAll('p', list(((scala.Product) item).productIterator()));
    }

    private void addType(DataType type) throws Exception {
        if (type.getClass() == StringType.class || type == org.apache.spark.sql.types.DataTypes.StringType) {
            out.writeByte('S');
            out.writeInt(((StringType) type).collationId());
            add(((StringType) type).constraint());
        } else {
            addProduct(type);
        }
    }

    private void addId(ExprId id) throws Exception {
        Integer known = (Integer) ids.get(id);
        if (known == null) {
            known = Integer.valueOf(ids.size());
            ids.put(id, known);
        }
        out.writeByte('I');
        out.writeInt(known.intValue());
    }

    private void addNode(TreeNode node) throws Exception {
        if (node instanceof LogicalRelation) {
            addRelation((LogicalRelation) node);
        } else if (node instanceof AttributeReference) {
            AttributeReference column = (AttributeReference) node;
            out.writeByte('C');
            addId(column.exprId());
            add(column.dataType());
            out.writeBoolean(column.nullable());
            add(column.metadata());
        } else if (node instanceof Alias) {
            Alias column = (Alias) node;
            out.writeByte('A');
            addId(column.exprId());
            add(column.child());
            add(column.explicitMetadata());
            add(column.nonInheritableMetadataKeys());
        } else if (node instanceof NamedLambdaVariable) {
            NamedLambdaVariable variable = (NamedLambdaVariable) node;
            out.writeByte('V');
            addId(variable.exprId());
            add(variable.dataType());
            out.writeBoolean(variable.nullable());
        } else {
            addOther(node);
        }
    }

    private void addOther(TreeNode node) throws Exception {
        Class kind = node.getClass();
        boolean isKnown = isSparks(kind) && node instanceof scala.Product;
        boolean isByChance = node instanceof Expression && !((Expression) node).deterministic();
        if (!isKnown || isByChance || node instanceof UserDefinedExpression
            || BY_ORDER.contains(kind.getSimpleName())) {
            throw new UnsupportedOperationException("it has a " + kind.getSimpleName());
        }
        out.writeByte('N');
        addText(kind.getName());
        addAll('N', list(((scala.Product) node).productIterator()));
        addAll('N', list(node.otherCopyArgs().iterator()));
    }

    private void addRelation(LogicalRelation leaf) throws Exception {
        if (leaf.isStreaming() || !(leaf.relation() instanceof HadoopFsRelation)) {
            throw new UnsupportedOperationException("it reads a " + leaf.relation().getClass().getSimpleName());
        }
        HadoopFsRelation relation = (HadoopFsRelation) leaf.relation();
        out.writeByte('R');
        addFormat(relation.fileFormat());
        add(relation.dataSchema());
        add(relation.partitionSchema());
        add(relation.bucketSpec());
        add(relation.options());
        scala.collection.Iterator output = leaf.output().iterator();
        out.writeInt(leaf.output().size());
        while (output.hasNext()) {
            AttributeReference column = (AttributeReference) output.next();
            addText(column.name());
            add(column);
        }
        FileIndex index = relation.location();
        String kind = index.getClass().getName();
        if (kind.equals(PRUNED_INDEX)) {
            addVersion(index, index);
        } else if (kind.equals(PREPARED_INDEX)) {
            addVersion(index, got(index, "preparedScan"));
        } else if (kind.equals(PINNED_INDEX)) {
            addListing(relation, index);
        } else {
            throw new UnsupportedOperationException("the files of a " + index.getClass().getSimpleName()
                + " are not pinned");
        }
    }

    private void addFormat(Object format) throws Exception {
        String name = format.getClass().getName();
        if (name.equals(SQL + "delta.DeltaParquetFileFormat") && format instanceof scala.Product) {
            addAll('D', list(((scala.Product) format).productIterator()));
        } else if (name.equals(SQL + "execution.datasources.parquet.ParquetFileFormat")) {
            out.writeByte('P');
        } else {
            throw new UnsupportedOperationException("it reads files by " + format.getClass().getSimpleName());
        }
    }

    private void addVersion(FileIndex index, Object scan) throws Exception {
        Object snapshot = got(scan, "scannedSnapshot");
        Long version = (Long) got(snapshot, "version");
        if (version.longValue() < 0) {
            throw new UnsupportedOperationException("it reads a table without a version");
        }
        out.writeByte('v');
        add(got(index, "path").toString());
        add(got(snapshot, "path").toString());
        add(got(got(snapshot, "metadata"), "id"));
        add(version);
        add(got(got(snapshot, "logSegment"), "lastCommitFileModificationTimestamp"));
        scala.Option sums = (scala.Option) got(snapshot, "checksumOpt");
        add(sums.isDefined() ? got(sums.get(), "txnId") : sums);
        java.util.List found = list(((scala.collection.Iterable) got(scan, "files")).iterator());
        java.util.TreeSet paths = new java.util.TreeSet();
        java.lang.reflect.Method path = found.isEmpty() ? null : method(found.get(0), "path");
        for (int at = 0; at < found.size(); at++) {
            paths.add(path.invoke(found.get(at), new Object[0]));
        }
        addAll('v', new java.util.ArrayList(paths));
    }

    private void addListing(HadoopFsRelation relation, FileIndex index) throws Exception {
        scala.collection.immutable.Seq none
            = scala.jdk.javaapi.CollectionConverters.asScala(new java.util.ArrayList()).toSeq();
        Object conf = session.sessionState().newHadoopConfWithOptions(relation.options());
        java.util.TreeMap lines = new java.util.TreeMap();
        scala.collection.Iterator partitions = index.listFiles(none, none).iterator();
        while (partitions.hasNext()) {
            PartitionDirectory partition = (PartitionDirectory) partitions.next();
            scala.collection.Iterator each = partition.files().iterator();
            while (each.hasNext()) {
                FileStatusWithMetadata file = (FileStatusWithMetadata) each.next();
                files.add(file.fileStatus());
                confs.add(conf);
                lines.put(file.getPath().toString(), new Object[] {Long.valueOf(file.getLen()),
                    Long.valueOf(file.getModificationTime()), file.metadata(),
                    partition.values().toSeq(relation.partitionSchema())});
            }
        }
        if (files.size() > MOST_FILES) {
            throw new UnsupportedOperationException("it reads more than " + MOST_FILES + " Parquet files");
        }
        addAll('L', new java.util.ArrayList(lines.keySet()));
        addAll('L', new java.util.ArrayList(lines.values()));
    }

    private void addText(String text) throws Exception {
        boolean isPlain = true;
        for (int at = 0; at < text.length() && isPlain; at++) {
            isPlain = text.charAt(at) < 128;
        }
        out.writeInt(text.length());
        out.writeBoolean(isPlain);
        if (isPlain) {
            out.writeBytes(text);
        } else {
            out.writeChars(text);
        }
    }

    private void addBytes(char tag, byte[] some) throws Exception {
        out.writeByte(tag);
        out.writeInt(some.length);
        out.write(some);
    }

    private void addAll(char tag, java.util.List items) throws Exception {
        out.writeByte(tag);
        out.writeInt(items.size());
        for (int at = 0; at < items.size(); at++) {
            add(items.get(at));
        }
    }

    private void addSorted(char tag, scala.collection.Iterator items) throws Exception {
        java.io.ByteArrayOutputStream whole = bytes;
        java.util.TreeSet sorted = new java.util.TreeSet();
        while (items.hasNext()) {
            bytes = new java.io.ByteArrayOutputStream();
            out = new java.io.DataOutputStream(bytes);
            add(items.next());
            sorted.add(bytes.toString("ISO-8859-1"));
        }
        bytes = whole;
        out = new java.io.DataOutputStream(bytes);
        out.writeByte(tag);
        out.writeInt(sorted.size());
        java.util.Iterator each = sorted.iterator();
        while (each.hasNext()) {
            out.write(((String) each.next()).getBytes("ISO-8859-1"));
        }
    }

    private static boolean isSparks(Class kind) {
        return kind.getName().startsWith(SQL + "catalyst.")
            && kind.getClassLoader() == LogicalPlan.class.getClassLoader();
    }

    private static java.util.List list(scala.collection.Iterator items) {
        java.util.ArrayList found = new java.util.ArrayList();
        while (items.hasNext()) {
            found.add(items.next());
        }
        return found;
    }

    private static Object got(Object of, String name) throws Exception {
        return method(of, name).invoke(of, new Object[0]);
    }

    private static java.lang.reflect.Method method(Object of, String name) throws Exception {
        java.lang.reflect.Method found = of.getClass().getMethod(name, new Class[0]);
        found.setAccessible(true);
        return found;
    }
}
