"""The builds of one query of which some need not run: the caller's cache has what they give.

What a build is, as bytes that are equal only for builds that give the same rows, whatever query they stand in.

Bytes name what the plan consists of, and hold nothing of Spark's. Spark copies a node of a plan from the arguments of
its constructor, so these say all of it. Each is written with its kind and its length, so no two plans have the same
bytes but for ids of columns, which are counted in the order in which they occur, and for names that no result depends
on. Spark's own canonical form will not do: it is the same for 0.0 and -0.0, and for sums of doubles in any order. What
is not known to be said by arguments is refused: functions of users, cached rows, scans whose files are not pinned.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from connectors.builds.materialized import MaterializedRows
from connectors.builds.query_builds import BuildRequest, BuildResult, QueryBuilds
from connectors.delta.file_index import KEPT_INDEX, PREPARED_INDEX
from connectors.jobs.progress import one_line
from connectors.jobs.runner import BuildScheduler
from connectors.parquet.listing import PINNED_INDEX
from connectors.spark.jvm import instance
from connectors.spark.transfer import long_bytes
from pruning.keys.cache import PruningCache
from pruning.keys.key_set import KeyLimits
from pruning.keys.summary import KeySummary
from pruning.reasons import Reason, ReasonCode

logger = logging.getLogger("scanprune")

# Such as a file system that does not tell whether a file is what it was.
_TROUBLE = (Py4JError, PySparkException, OSError, ValueError)

# A row is an object over an array, beside its bytes; what else a summary and an entry are made of.
_BYTES_BY_ROW, _BYTES_BY_ENTRY = 64, 4096


@dataclass(frozen=True, slots=True)
class _CachedBuild:
    """What a build gave, as the cache holds it."""

    keys: KeySummary
    rows: MaterializedRows | None

    @property
    def nbytes(self) -> int:
        rows = 0 if self.rows is None else self.rows.nbytes + self.rows.count * _BYTES_BY_ROW
        return self.keys.nbytes + rows + _BYTES_BY_ENTRY

    def built(self, spark: SparkSession) -> BuildResult:
        rows = None if self.rows is None else self.rows.of(spark)
        return BuildResult(replace(self.keys, source="the cache"), rows, from_cache=True)


@dataclass(frozen=True, slots=True)
class _Key:
    """What is asked for: a build, and `session`, which decides on its result beside the plan."""

    build: BuildKey
    session: bytes

    @property
    def full(self) -> Hashable:
        return self.build.named, self.session

    @property
    def nbytes(self) -> int:
        return len(self.build.named) + len(self.session)


@dataclass(slots=True)
class CachedBuildRunner:
    """Runs builds as `QueryBuilds` does, but for those in `cache`; why one is not kept there is added to `reasons`.

    Trouble with the cache leaves a build to be run.
    """

    channel: BuildScheduler
    cache: PruningCache
    reasons: dict[Reason, None]
    _builds: QueryBuilds = field(init=False)
    _owner: Hashable = field(init=False)

    def __post_init__(self) -> None:
        self._builds = QueryBuilds(self.channel)
        # One and the same application: rows lie on the heap of its driver.
        context = self.channel.spark.sparkContext
        self._owner = str(context.applicationId), int(context.startTime)

    def run(self, asked: Sequence[BuildRequest]) -> list[BuildResult]:
        """What each build gives, all that have to run at the same time."""
        # Before plans are looked at, so that confs that are set meanwhile are seen when builds have ended.
        session = self._session()
        keys = [self._key(each, session) for each in asked]
        found = [self._found(key) for key in keys]
        missing = [at for at, built in enumerate(found) if built is None]
        if not missing:
            return [built for built in found if built is not None]
        ran = dict(zip(missing, self._builds.run([asked[at] for at in missing]), strict=True))
        is_same = session == self._session()
        for at, built in ran.items():
            self._keep(keys[at], asked[at].name, built, is_same=is_same)
        return [ran[at] if built is None else built for at, built in enumerate(found)]

    def _session(self) -> bytes | None:
        try:
            return session_key(self.channel.spark) + repr(KeyLimits.of(self.channel.options)).encode()
        except _TROUBLE:
            logger.debug("Reading the confs of the session failed", exc_info=True)
            return None

    def _key(self, asked: BuildRequest, session: bytes | None) -> _Key | None:
        why = "the session does not tell its confs"
        try:
            key = why if session is None else build_key(self.channel.spark, asked.plan, asked.key)
            if session is not None and isinstance(key, BuildKey):
                return _Key(key, session)
            why = str(key)
        except _TROUBLE as error:
            logger.debug("Naming the build of %s failed", asked.name, exc_info=True)
            why = one_line(error)
        self._refuse(asked.name, why)
        return None

    def _refuse(self, name: str, why: str) -> None:
        self.reasons[Reason(ReasonCode.NOT_CACHED, name, why)] = None

    def _found(self, key: _Key | None) -> BuildResult | None:
        if key is None:
            self.cache.missed()
            return None
        found = self.cache.find(self._owner, key.full)
        return found.built(self.channel.spark) if isinstance(found, _CachedBuild) else None

    def _keep(self, key: _Key | None, name: str, built: BuildResult, *, is_same: bool) -> None:
        if key is None or isinstance(built.keys, Reason):
            return
        try:
            why = _why_not(key, built.keys) if is_same else "confs were set meanwhile"
        except _TROUBLE as error:
            logger.debug("Looking after the build of %s failed", name, exc_info=True)
            why = one_line(error)
        kept = _CachedBuild(built.keys, None if built.rows is None else built.rows.held())
        nbytes = kept.nbytes + key.nbytes
        if not why and not self.cache.keep(self._owner, key.full, kept, nbytes):
            why = f"{nbytes:,} bytes, at most {self.cache.max_bytes:,} are held"
        if why:
            self._refuse(name, why)


def _why_not(key: _Key, keys: KeySummary) -> str:
    """Why another run may give something else; empty where none will."""
    if any(each.code is ReasonCode.UNREPEATABLE_KEYS for each in keys.reasons):
        return "another run may give other rows"
    return "" if key.build.is_settled() else "a file of it was written meanwhile"


# A file that is written once more within a tick of the store's clock keeps its time, and clocks differ by seconds.
_SETTLED_MILLISECONDS = 60_000
_REFUSED = b"!"
_KEY = "BuildKey"
_KEY_SOURCE = f"""
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
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

public class {_KEY} {{
    private static final int MOST_BYTES = 1 << 20;
    private static final int MOST_FILES = 32;
    private static final String SQL = "org.apache.spark.sql.";
    private static final java.util.List BY_ORDER = java.util.Arrays.asList(
        new Object[] {{"GlobalLimit", "LocalLimit", "Offset", "Tail", "Sample"}});
    private final SparkSession session;
    private final long settled;
    private final java.util.HashMap ids = new java.util.HashMap();
    private final java.util.ArrayList files = new java.util.ArrayList();
    private final java.util.ArrayList confs = new java.util.ArrayList();
    private java.io.ByteArrayOutputStream bytes = new java.io.ByteArrayOutputStream();
    private java.io.DataOutputStream out = new java.io.DataOutputStream(bytes);

    public {_KEY}(SparkSession session, LogicalPlan plan, Expression key, long settled) throws Exception {{
        this.session = session;
        this.settled = settled;
        try {{
            if (plan == null) {{
                add(session.sessionState().conf().sessionLocalTimeZone());
                add(session.sessionState().conf().getAllConfs());
                return;
            }}
            add(plan);
            add(key);
            String why = unsettled();
            if (!why.isEmpty()) {{
                throw new UnsupportedOperationException(why);
            }}
        }} catch (UnsupportedOperationException refused) {{
            bytes = new java.io.ByteArrayOutputStream();
            bytes.write(("!" + refused.getMessage()).getBytes(java.nio.charset.StandardCharsets.UTF_8));
        }}
    }}

    public java.io.ByteArrayOutputStream bytes() {{
        return bytes;
    }}

    public String unsettled() throws java.io.IOException {{
        for (int at = 0; at < files.size(); at++) {{
            FileStatus listed = (FileStatus) files.get(at);
            try {{
                org.apache.hadoop.fs.FileSystem system = listed.getPath().getFileSystem(
                    (org.apache.hadoop.conf.Configuration) confs.get(at));
                FileStatus found = system.getFileStatus(listed.getPath());
                if (found.getLen() != listed.getLen()
                    || found.getModificationTime() != listed.getModificationTime()) {{
                    return "a file of it is not the one that was listed";
                }}
            }} catch (java.io.FileNotFoundException gone) {{
                return "a file of it is gone";
            }}
            long age = System.currentTimeMillis() - listed.getModificationTime();
            if (age < settled || listed.getModificationTime() <= 0) {{
                return "a file of it was written less than " + settled / 1000 + " seconds ago";
            }}
        }}
        return "";
    }}

    private void add(Object item) throws Exception {{
        if (bytes.size() > MOST_BYTES) {{
            throw new UnsupportedOperationException("its plan takes more than " + MOST_BYTES + " bytes");
        }}
        if (item == null) {{
            out.writeByte('0');
        }} else if (item instanceof TreeNode) {{
            addNode((TreeNode) item);
        }} else if (item instanceof DataType) {{
            addType((DataType) item);
        }} else if (item instanceof ExprId) {{
            addId((ExprId) item);
        }} else if (item instanceof Metadata) {{
            out.writeByte('m');
            addText(((Metadata) item).json());
        }} else if (item instanceof org.apache.spark.QueryContext) {{
            out.writeByte('x');
        }} else if (item instanceof scala.Enumeration.Value) {{
            out.writeByte('e');
            out.writeInt(((scala.Enumeration.Value) item).id());
            addText(item.toString());
        }} else if (!addPlain(item) && !addValue(item) && !addMany(item)) {{
            addProduct(item);
        }}
    }}

    private boolean addPlain(Object item) throws Exception {{
        if (item instanceof Boolean) {{
            out.writeByte(((Boolean) item).booleanValue() ? 'T' : 'F');
        }} else if (item instanceof Byte) {{
            out.writeByte('b');
            out.writeByte(((Byte) item).byteValue());
        }} else if (item instanceof Short) {{
            out.writeByte('s');
            out.writeShort(((Short) item).shortValue());
        }} else if (item instanceof Integer) {{
            out.writeByte('i');
            out.writeInt(((Integer) item).intValue());
        }} else if (item instanceof Long) {{
            out.writeByte('l');
            out.writeLong(((Long) item).longValue());
        }} else if (item instanceof Float) {{
            out.writeByte('f');
            out.writeInt(Float.floatToRawIntBits(((Float) item).floatValue()));
        }} else if (item instanceof Double) {{
            out.writeByte('d');
            out.writeLong(Double.doubleToRawLongBits(((Double) item).doubleValue()));
        }} else if (item instanceof String) {{
            out.writeByte('t');
            addText((String) item);
        }} else if (item instanceof Class && isSparks((Class) item)) {{
            out.writeByte('K');
            addText(((Class) item).getName());
        }} else {{
            return false;
        }}
        return true;
    }}

    private boolean addValue(Object item) throws Exception {{
        if (item instanceof UTF8String) {{
            addBytes('u', ((UTF8String) item).getBytes());
        }} else if (item instanceof byte[]) {{
            addBytes('y', (byte[]) item);
        }} else if (item instanceof Decimal) {{
            Decimal number = (Decimal) item;
            out.writeByte('c');
            out.writeInt(number.precision());
            out.writeInt(number.scale());
            addText(number.toJavaBigDecimal().toString());
        }} else if (item instanceof CalendarInterval) {{
            out.writeByte('v');
            out.writeInt(((CalendarInterval) item).months);
            out.writeInt(((CalendarInterval) item).days);
            out.writeLong(((CalendarInterval) item).microseconds);
        }} else if (item instanceof VariantVal) {{
            addBytes('a', ((VariantVal) item).getMetadata());
            addBytes('a', ((VariantVal) item).getValue());
        }} else if (item instanceof UnsafeRow) {{
            addBytes('r', ((UnsafeRow) item).getBytes());
        }} else if (item instanceof GenericInternalRow) {{
            addAll('g', java.util.Arrays.asList(((GenericInternalRow) item).values()));
        }} else if (item instanceof GenericArrayData) {{
            addAll('h', java.util.Arrays.asList(((GenericArrayData) item).array()));
        }} else if (item instanceof InternalRow || item instanceof ArrayData || item instanceof MapData) {{
            throw new UnsupportedOperationException("it holds a " + item.getClass().getSimpleName());
        }} else {{
            return false;
        }}
        return true;
    }}

    private boolean addMany(Object item) throws Exception {{
        if (item instanceof scala.Option) {{
            out.writeByte(((scala.Option) item).isEmpty() ? 'n' : 'o');
            if (((scala.Option) item).isDefined()) {{
                add(((scala.Option) item).get());
            }}
        }} else if (item instanceof scala.collection.Map) {{
            addSorted('k', ((scala.collection.Map) item).iterator());
        }} else if (item instanceof scala.collection.Set) {{
            addSorted('w', ((scala.collection.Set) item).iterator());
        }} else if (item instanceof scala.collection.Seq) {{
            addAll('q', list(((scala.collection.Seq) item).iterator()));
        }} else if (item instanceof Object[]) {{
            addAll('j', java.util.Arrays.asList((Object[]) item));
        }} else {{
            return false;
        }}
        return true;
    }}

    private void addProduct(Object item) throws Exception {{
        String name = item.getClass().getName();
        boolean isKnown = name.startsWith(SQL + "catalyst.") || name.startsWith(SQL + "internal.")
            || name.startsWith(SQL + "types.") || name.startsWith(SQL + "delta.actions.")
            || name.startsWith("scala.Tuple");
        if (!isKnown || !(item instanceof scala.Product)) {{
            throw new UnsupportedOperationException("it holds a " + item.getClass().getSimpleName());
        }}
        out.writeByte('p');
        addText(name);
        addAll('p', list(((scala.Product) item).productIterator()));
    }}

    private void addType(DataType type) throws Exception {{
        if (type.getClass() == StringType.class || type == org.apache.spark.sql.types.DataTypes.StringType) {{
            out.writeByte('S');
            out.writeInt(((StringType) type).collationId());
            add(((StringType) type).constraint());
        }} else {{
            addProduct(type);
        }}
    }}

    private void addId(ExprId id) throws Exception {{
        Integer known = (Integer) ids.get(id);
        if (known == null) {{
            known = Integer.valueOf(ids.size());
            ids.put(id, known);
        }}
        out.writeByte('I');
        out.writeInt(known.intValue());
    }}

    private void addNode(TreeNode node) throws Exception {{
        if (node instanceof LogicalRelation) {{
            addRelation((LogicalRelation) node);
        }} else if (node instanceof AttributeReference) {{
            AttributeReference column = (AttributeReference) node;
            out.writeByte('C');
            addId(column.exprId());
            add(column.dataType());
            out.writeBoolean(column.nullable());
            add(column.metadata());
        }} else if (node instanceof Alias) {{
            Alias column = (Alias) node;
            out.writeByte('A');
            addId(column.exprId());
            add(column.child());
            add(column.explicitMetadata());
            add(column.nonInheritableMetadataKeys());
        }} else if (node instanceof NamedLambdaVariable) {{
            NamedLambdaVariable variable = (NamedLambdaVariable) node;
            out.writeByte('V');
            addId(variable.exprId());
            add(variable.dataType());
            out.writeBoolean(variable.nullable());
        }} else {{
            addOther(node);
        }}
    }}

    private void addOther(TreeNode node) throws Exception {{
        Class kind = node.getClass();
        boolean isKnown = isSparks(kind) && node instanceof scala.Product;
        boolean isByChance = node instanceof Expression && !((Expression) node).deterministic();
        if (!isKnown || isByChance || node instanceof UserDefinedExpression
            || BY_ORDER.contains(kind.getSimpleName())) {{
            throw new UnsupportedOperationException("it has a " + kind.getSimpleName());
        }}
        out.writeByte('N');
        addText(kind.getName());
        addAll('N', list(((scala.Product) node).productIterator()));
        addAll('N', list(node.otherCopyArgs().iterator()));
    }}

    private void addRelation(LogicalRelation leaf) throws Exception {{
        if (leaf.isStreaming() || !(leaf.relation() instanceof HadoopFsRelation)) {{
            throw new UnsupportedOperationException("it reads a " + leaf.relation().getClass().getSimpleName());
        }}
        HadoopFsRelation relation = (HadoopFsRelation) leaf.relation();
        out.writeByte('R');
        addFormat(relation.fileFormat());
        add(relation.dataSchema());
        add(relation.partitionSchema());
        add(relation.bucketSpec());
        add(relation.options());
        scala.collection.Iterator output = leaf.output().iterator();
        out.writeInt(leaf.output().size());
        while (output.hasNext()) {{
            AttributeReference column = (AttributeReference) output.next();
            addText(column.name());
            add(column);
        }}
        FileIndex index = relation.location();
        String kind = index.getClass().getName();
        if (kind.equals("{KEPT_INDEX}")) {{
            addVersion(index, index);
        }} else if (kind.equals("{PREPARED_INDEX}")) {{
            addVersion(index, got(index, "preparedScan"));
        }} else if (kind.equals("{PINNED_INDEX}")) {{
            addListing(relation, index);
        }} else {{
            throw new UnsupportedOperationException("the files of a " + index.getClass().getSimpleName()
                + " are not pinned");
        }}
    }}

    private void addFormat(Object format) throws Exception {{
        String name = format.getClass().getName();
        if (name.equals(SQL + "delta.DeltaParquetFileFormat") && format instanceof scala.Product) {{
            addAll('D', list(((scala.Product) format).productIterator()));
        }} else if (name.equals(SQL + "execution.datasources.parquet.ParquetFileFormat")) {{
            out.writeByte('P');
        }} else {{
            throw new UnsupportedOperationException("it reads files by " + format.getClass().getSimpleName());
        }}
    }}

    private void addVersion(FileIndex index, Object scan) throws Exception {{
        Object snapshot = got(scan, "scannedSnapshot");
        Long version = (Long) got(snapshot, "version");
        if (version.longValue() < 0) {{
            throw new UnsupportedOperationException("it reads a table without a version");
        }}
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
        for (int at = 0; at < found.size(); at++) {{
            paths.add(path.invoke(found.get(at), new Object[0]));
        }}
        addAll('v', new java.util.ArrayList(paths));
    }}

    private void addListing(HadoopFsRelation relation, FileIndex index) throws Exception {{
        scala.collection.immutable.Seq none
            = scala.jdk.javaapi.CollectionConverters.asScala(new java.util.ArrayList()).toSeq();
        Object conf = session.sessionState().newHadoopConfWithOptions(relation.options());
        java.util.TreeMap lines = new java.util.TreeMap();
        scala.collection.Iterator partitions = index.listFiles(none, none).iterator();
        while (partitions.hasNext()) {{
            PartitionDirectory partition = (PartitionDirectory) partitions.next();
            scala.collection.Iterator each = partition.files().iterator();
            while (each.hasNext()) {{
                FileStatusWithMetadata file = (FileStatusWithMetadata) each.next();
                files.add(file.fileStatus());
                confs.add(conf);
                lines.put(file.getPath().toString(), new Object[] {{Long.valueOf(file.getLen()),
                    Long.valueOf(file.getModificationTime()), file.metadata(),
                    partition.values().toSeq(relation.partitionSchema())}});
            }}
        }}
        if (files.size() > MOST_FILES) {{
            throw new UnsupportedOperationException("it reads more than " + MOST_FILES + " Parquet files");
        }}
        addAll('L', new java.util.ArrayList(lines.keySet()));
        addAll('L', new java.util.ArrayList(lines.values()));
    }}

    private void addText(String text) throws Exception {{
        boolean isPlain = true;
        for (int at = 0; at < text.length() && isPlain; at++) {{
            isPlain = text.charAt(at) < 128;
        }}
        out.writeInt(text.length());
        out.writeBoolean(isPlain);
        if (isPlain) {{
            out.writeBytes(text);
        }} else {{
            out.writeChars(text);
        }}
    }}

    private void addBytes(char tag, byte[] some) throws Exception {{
        out.writeByte(tag);
        out.writeInt(some.length);
        out.write(some);
    }}

    private void addAll(char tag, java.util.List items) throws Exception {{
        out.writeByte(tag);
        out.writeInt(items.size());
        for (int at = 0; at < items.size(); at++) {{
            add(items.get(at));
        }}
    }}

    private void addSorted(char tag, scala.collection.Iterator items) throws Exception {{
        java.io.ByteArrayOutputStream whole = bytes;
        java.util.TreeSet sorted = new java.util.TreeSet();
        while (items.hasNext()) {{
            bytes = new java.io.ByteArrayOutputStream();
            out = new java.io.DataOutputStream(bytes);
            add(items.next());
            sorted.add(bytes.toString("ISO-8859-1"));
        }}
        bytes = whole;
        out = new java.io.DataOutputStream(bytes);
        out.writeByte(tag);
        out.writeInt(sorted.size());
        java.util.Iterator each = sorted.iterator();
        while (each.hasNext()) {{
            out.write(((String) each.next()).getBytes("ISO-8859-1"));
        }}
    }}

    private static boolean isSparks(Class kind) {{
        return kind.getName().startsWith(SQL + "catalyst.")
            && kind.getClassLoader() == LogicalPlan.class.getClassLoader();
    }}

    private static java.util.List list(scala.collection.Iterator items) {{
        java.util.ArrayList found = new java.util.ArrayList();
        while (items.hasNext()) {{
            found.add(items.next());
        }}
        return found;
    }}

    private static Object got(Object of, String name) throws Exception {{
        return method(of, name).invoke(of, new Object[0]);
    }}

    private static java.lang.reflect.Method method(Object of, String name) throws Exception {{
        java.lang.reflect.Method found = of.getClass().getMethod(name, new Class[0]);
        found.setAccessible(true);
        return found;
    }}
}}
"""


@dataclass(frozen=True, slots=True)
class BuildKey:
    """`named` is equal only for builds of the same rows and keys by the same confs."""

    named: bytes
    _found: Any

    def is_settled(self) -> bool:
        """Whether the files of the build that may be written again are those that were listed, and not of late.

        True before and after a build, nothing was written meanwhile. Of Delta tables no file is ever written again.
        """
        return not str(self._found.unsettled())


def build_key(spark: SparkSession, plan: Any, key: Any) -> BuildKey | str:
    """The key of a build of `key`, an expression of the JVM, over the rows of `plan`; why there is none."""
    found = _made(spark, plan, key)
    named = long_bytes(spark, found.bytes())
    return named[1:].decode() if named.startswith(_REFUSED) else BuildKey(named, found)


def session_key(spark: SparkSession) -> bytes:
    """Equal only for sessions in which equal plans give the same rows: all confs that were set, and the time zone."""
    return long_bytes(spark, _made(spark, None, None).bytes())


def _made(spark: SparkSession, plan: Any, key: Any) -> Any:
    session = spark._jsparkSession  # noqa: SLF001 - PySpark's only door to the JVM
    return instance(spark, _KEY, _KEY_SOURCE, session, plan, key, _SETTLED_MILLISECONDS)
