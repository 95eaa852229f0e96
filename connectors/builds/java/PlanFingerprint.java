import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A text that is equal only for builds that give the same rows, whatever query they stand in.
 *
 * It covers projections, filters, joins and aggregates, with deterministic expressions of Spark itself, over pinned
 * files and over rows that an earlier build gave. Any other plan is refused: bytes() then begins with an exclamation
 * mark and the reason. Each argument is written with its class and length; ids of columns are numbered in the order of
 * their occurrence, and names of columns that no result depends on are left out.
 *
 * It relies on the rule that TreeNode.productIterator() gives all constructor arguments of a node, on the names of file
 * indexes and formats, and reads versions and files of Delta's indexes by reflection.
 */
public class PlanFingerprint {
    private static final int MOST_CHARACTERS = 1 << 20;
    private static final String SQL = "org.apache.spark.sql.";
    private static final String PREPARED_INDEX = SQL + "delta.stats.PreparedDeltaFileIndex";
    private static final String PRUNED_INDEX = "PrunedFileIndex";
    private static final String PINNED_INDEX = "PinnedFileIndex";
    private static final java.util.List OPERATORS = java.util.Arrays.asList(
        new Object[] {"Project", "Filter", "Join", "Aggregate", "LocalRelation"});
    private static final java.util.List ARGUMENTS = java.util.Arrays.asList(
        new Object[] {SQL + "catalyst.", SQL + "internal.", "scala.Tuple"});
    private final SparkSession session;
    private final long settled;
    private final int mostFiles;
    private final java.util.HashMap ids = new java.util.HashMap();
    private final java.util.ArrayList files = new java.util.ArrayList();
    private final java.util.ArrayList confs = new java.util.ArrayList();
    private StringBuilder text = new StringBuilder();

    public PlanFingerprint(SparkSession session, LogicalPlan plan, Expression key, long settled, int mostFiles)
        throws Exception {
        this.session = session;
        this.settled = settled;
        this.mostFiles = mostFiles;
        try {
            if (plan == null) {
                // The session itself: with other confs, equal plans may give other rows.
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
            text = new StringBuilder("!" + refused.getMessage());
        }
    }

    public java.io.ByteArrayOutputStream bytes() throws java.io.IOException {
        java.io.ByteArrayOutputStream found = new java.io.ByteArrayOutputStream();
        // Two bytes for each character: no encoder replaces what is not valid Unicode.
        new java.io.DataOutputStream(found).writeChars(text.toString());
        return found;
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
        if (text.length() > MOST_CHARACTERS) {
            throw new UnsupportedOperationException("its plan takes more than " + MOST_CHARACTERS + " characters");
        }
        if (item == null) {
            write("null", "");
        } else if (item instanceof LogicalRelation) {
            addRelation((LogicalRelation) item);
        } else if (item instanceof TreeNode) {
            addNode((TreeNode) item);
        } else if (item instanceof ExprId) {
            addId((ExprId) item);
        } else if (item instanceof DataType) {
            // The JSON leaves out collations, the SQL leaves out metadata.
            write("type", ((DataType) item).json() + ((DataType) item).sql());
        } else if (item instanceof Metadata) {
            write("metadata", ((Metadata) item).json());
        } else if (item instanceof org.apache.spark.QueryContext) {
            write("context", "");
        } else if (!addMany(item) && !addValue(item)) {
            addArgument(item);
        }
    }

    private boolean addMany(Object item) throws Exception {
        if (item instanceof scala.collection.Map || item instanceof scala.collection.Set) {
            addSorted(((scala.collection.Iterable) item).iterator());
        } else if (item instanceof scala.Option) {
            addAll("option", ((scala.Option) item).iterator());
        } else if (item instanceof scala.collection.Seq) {
            addAll("seq", ((scala.collection.Seq) item).iterator());
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

    private void addNode(TreeNode node) throws Exception {
        if (node instanceof AttributeReference) {
            AttributeReference column = (AttributeReference) node;
            write("column", String.valueOf(column.nullable()));
            addId(column.exprId());
            add(column.dataType());
            add(column.metadata());
        } else if (node instanceof Alias) {
            Alias column = (Alias) node;
            write("alias", "");
            addId(column.exprId());
            add(column.child());
            add(column.explicitMetadata());
            add(column.nonInheritableMetadataKeys());
        } else if (node instanceof Expression ? isKnown((Expression) node) : isKnown(node)) {
            write("node", node.getClass().getName());
            addAll("arguments", ((scala.Product) node).productIterator());
            addAll("arguments", node.otherCopyArgs().iterator());
        } else {
            throw new UnsupportedOperationException("it has a " + node.getClass().getSimpleName());
        }
    }

    private static boolean isKnown(TreeNode operator) {
        return isSparks(operator) && OPERATORS.contains(operator.getClass().getSimpleName());
    }

    private static boolean isKnown(Expression expression) {
        return isSparks(expression) && expression.deterministic() && !(expression instanceof UserDefinedExpression);
    }

    private static boolean isSparks(TreeNode node) {
        return node instanceof scala.Product && node.getClass().getName().startsWith(SQL + "catalyst.")
            && node.getClass().getClassLoader() == LogicalPlan.class.getClassLoader();
    }

    private void addArgument(Object item) throws Exception {
        String kind = item.getClass().getName();
        boolean isKnown = false;
        for (int at = 0; at < ARGUMENTS.size() && item instanceof scala.Product; at++) {
            isKnown |= kind.startsWith((String) ARGUMENTS.get(at));
        }
        if (!isKnown) {
            throw new UnsupportedOperationException("it holds a " + item.getClass().getSimpleName());
        }
        write("argument", kind);
        addAll("arguments", ((scala.Product) item).productIterator());
    }

    private void addId(ExprId id) {
        if (!ids.containsKey(id)) {
            ids.put(id, Integer.valueOf(ids.size()));
        }
        write("id", ids.get(id).toString());
    }

    private void addRelation(LogicalRelation leaf) throws Exception {
        if (leaf.isStreaming() || !(leaf.relation() instanceof HadoopFsRelation)) {
            throw new UnsupportedOperationException("it reads a " + leaf.relation().getClass().getSimpleName());
        }
        HadoopFsRelation relation = (HadoopFsRelation) leaf.relation();
        String format = relation.fileFormat().getClass().getName();
        if (!format.equals(SQL + "delta.DeltaParquetFileFormat")
            && !format.equals(SQL + "execution.datasources.parquet.ParquetFileFormat")) {
            throw new UnsupportedOperationException("it reads files by "
                + relation.fileFormat().getClass().getSimpleName());
        }
        write("relation", format);
        add(relation.dataSchema());
        add(relation.partitionSchema());
        add(relation.options());
        scala.collection.Iterator output = leaf.output().iterator();
        while (output.hasNext()) {
            AttributeReference column = (AttributeReference) output.next();
            add(column.name());
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

    private void addVersion(FileIndex index, Object scan) throws Exception {
        Object snapshot = got(scan, "scannedSnapshot");
        Long version = (Long) got(snapshot, "version");
        if (version.longValue() < 0) {
            throw new UnsupportedOperationException("it reads a table without a version");
        }
        add(got(index, "path").toString());
        add(got(snapshot, "path").toString());
        add(got(got(snapshot, "metadata"), "id"));
        add(version);
        add(got(got(snapshot, "logSegment"), "lastCommitFileModificationTimestamp"));
        scala.Option sums = (scala.Option) got(snapshot, "checksumOpt");
        add(sums.isDefined() ? got(sums.get(), "txnId") : sums);
        scala.collection.Iterator found = ((scala.collection.Iterable) got(scan, "files")).iterator();
        java.util.TreeSet paths = new java.util.TreeSet();
        java.lang.reflect.Method path = null;
        while (found.hasNext()) {
            Object file = found.next();
            path = path == null ? method(file, "path") : path;
            paths.add(path.invoke(file, new Object[0]));
        }
        addAll("files", scala.jdk.javaapi.CollectionConverters.asScala(paths.iterator()));
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
                lines.put(file.getPath().toString(), new scala.Tuple3(Long.valueOf(file.getLen()),
                    Long.valueOf(file.getModificationTime()), partition.values().toSeq(relation.partitionSchema())));
            }
        }
        if (files.size() > mostFiles) {
            throw new UnsupportedOperationException("it reads more than " + mostFiles + " Parquet files");
        }
        addAll("files", scala.jdk.javaapi.CollectionConverters.asScala(lines.keySet().iterator()));
        addAll("files", scala.jdk.javaapi.CollectionConverters.asScala(lines.values().iterator()));
    }

    private void addAll(String kind, scala.collection.Iterator items) throws Exception {
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

    private void write(String kind, String value) {
        text.append(kind).append(' ').append(value.length()).append(':').append(value);
    }

    private static String latin(byte[] bytes) {
        return new String(bytes, java.nio.charset.StandardCharsets.ISO_8859_1);
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
