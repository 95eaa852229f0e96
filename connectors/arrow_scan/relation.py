"""Numbers of tasks as a DataFrame, of which Spark believes that it leads to as many bytes as another one has.

What tasks are given beside their function: together with it while it is small, else as a broadcast.

Pruned queries that are cached, found again though their scans are made by pyarrow.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from py4j.protocol import Py4JError
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession

from connectors.parquet.listing import frame_of
from connectors.spark.jvm import instance

# What the name of the numbers begins with, by which a scan is known in a plan.
PREFIX = "scanprune_"
_IDS = "TaskIds"
# Without a size of its own the scan would be as small for Spark as the numbers are, and be broadcast. For Spark a map
# has the bytes of what it maps, however wide its rows are.
_IDS_SOURCE = """
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeMap$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;

public class TaskIds {
    private final QueryExecution ids;

    public TaskIds(QueryExecution ids) {
        this.ids = ids;
    }

    public LogicalPlan plan(LogicalPlan like, String name) {
        Statistics statistics = new Statistics(
            like.stats().sizeInBytes(), scala.Option.empty(), AttributeMap$.MODULE$.empty(), false);
        Attribute number = ((Attribute) ids.analyzed().output().head()).withName(name);
        return new LogicalRDD(sequence(new Object[] {number}), ids.toRdd(), new UnknownPartitioning(0),
            sequence(new Object[0]), false, scala.Option.empty(), ids.sparkSession(),
            scala.Option.apply(statistics), scala.Option.empty());
    }

    private static scala.collection.immutable.Seq sequence(Object[] items) {
        return scala.jdk.javaapi.CollectionConverters.asScala(java.util.Arrays.asList(items)).toSeq();
    }
}
"""


def task_ids(spark: SparkSession, count: int, like: DataFrame, digest: str) -> DataFrame:
    """The numbers below `count`, each in a task of its own; for Spark they, and a map of them, are as large as `like`.

    That is what Spark estimates of its plan as it is analysed. `digest` tells what is made of the numbers.
    """
    ids = spark.range(0, count, 1, count)
    execution, wanted = (each._jdf.queryExecution() for each in (ids, like))  # noqa: SLF001 - plans have no public door
    plan = instance(spark, _IDS, _IDS_SOURCE, execution).plan(wanted.analyzed(), f"{PREFIX}{digest}")
    return frame_of(spark, plan)


T = TypeVar("T")

# A function of more than a megabyte PySpark broadcasts by itself, and leaves the file of it behind.
_MOST_BYTES = 512 << 10
# Spark releases a broadcast once no plan leads to it, but for the file that Python wrote it to, which stays as long as
# the context: on the driver it is what tasks read.
_FILE = "FileOfBroadcast"
_FILE_SOURCE = """
import java.lang.ref.Cleaner;

public class FileOfBroadcast implements Runnable {
    private static final Cleaner CLEANER = Cleaner.create();
    private final String path;

    public FileOfBroadcast(String path) {
        this.path = path;
    }

    public void endsWith(Object broadcast) {
        CLEANER.register(broadcast, this);
    }

    public void run() {
        new java.io.File(path).delete();
    }
}
"""


@dataclass(frozen=True, slots=True)
class TaskPayload(Generic[T]):
    """A value for tasks: they may run as often, and as late, as a plan that leads to them is there.

    Values of the same `digest` are equal.
    """

    digest: str
    _held: T | Broadcast[T]

    @staticmethod
    def of(spark: SparkSession, value: T) -> TaskPayload[T]:
        """The value as it is at this moment; a classic session is needed."""
        pickled = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        digest = hashlib.blake2b(pickled, digest_size=16).hexdigest()
        if len(pickled) <= _MOST_BYTES:
            return TaskPayload(digest, value)
        held = spark.sparkContext.broadcast(value)
        instance(spark, _FILE, _FILE_SOURCE, held._path).endsWith(held._jbroadcast)  # noqa: SLF001 - no other door
        return TaskPayload(digest, held)

    @property
    def value(self) -> T:
        """The value, of which a worker holds one for all tasks that it runs."""
        return self._held.value if isinstance(self._held, Broadcast) else self._held


logger = logging.getLogger("scanprune")

# Spark answers from its cache what has the plan of a cached query. Of functions of Python it takes only the very same
# one for the same, so scans that read the same as those of a cached query become these, but only where Spark then does
# answer from its cache: whatever is read anew is counted for itself. Spark has no door to the plans that it has cached.
_SCANS = "CachedScans"
_SCANS_SOURCE = f"""
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CachedData;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.LogicalRDD;

public class CachedScans extends scala.runtime.AbstractPartialFunction {{
    private final Dataset own;
    private final java.util.Map cached = new java.util.HashMap();

    public CachedScans(Dataset own) {{
        this.own = own;
    }}

    public Dataset found() throws Exception {{
        CacheManager manager = own.sparkSession().sharedState().cacheManager();
        if (manager.isEmpty()) {{
            return own;
        }}
        java.lang.reflect.Field field = CacheManager.class.getDeclaredField("cachedData");
        field.setAccessible(true);
        scala.collection.Iterator entries = ((scala.collection.Iterable) field.get(manager)).iterator();
        Dataset found = own;
        while (found == own && entries.hasNext()) {{
            cached.clear();
            learn(((CachedData) entries.next()).plan());
            found = with();
        }}
        return found;
    }}

    private Dataset with() {{
        LogicalPlan plan = own.queryExecution().analyzed();
        LogicalPlan other = cached.isEmpty() ? plan : (LogicalPlan) plan.transformUpWithSubqueries(this);
        if (other == plan) {{
            return own;
        }}
        Dataset found = Dataset.ofRows((SparkSession) own.sparkSession(), other);
        return count(found.queryExecution().withCachedData()) < count(other) ? found : own;
    }}

    public boolean isDefinedAt(Object node) {{
        return true;
    }}

    public Object applyOrElse(Object node, scala.Function1 otherwise) {{
        MapInArrow found = isScan((LogicalPlan) node) ? (MapInArrow) cached.get(name((LogicalPlan) node)) : null;
        if (found == null) {{
            return node;
        }}
        MapInArrow scan = (MapInArrow) node;
        return new MapInArrow(found.functionExpr(), scan.output(), found.child(), scan.isBarrier(), scan.profile());
    }}

    private void learn(LogicalPlan plan) {{
        if (isScan(plan)) {{
            cached.put(name(plan), plan);
        }}
        scala.collection.Iterator plans = below(plan);
        while (plans.hasNext()) {{
            learn((LogicalPlan) plans.next());
        }}
    }}

    private static int count(LogicalPlan plan) {{
        int sum = isScan(plan) ? 1 : 0;
        scala.collection.Iterator plans = below(plan);
        while (plans.hasNext()) {{
            sum += count((LogicalPlan) plans.next());
        }}
        return sum;
    }}

    private static scala.collection.Iterator below(LogicalPlan plan) {{
        java.util.ArrayList found = new java.util.ArrayList();
        add(found, plan.children().iterator());
        add(found, plan.subqueries().iterator());
        return scala.jdk.javaapi.CollectionConverters.asScala(found).iterator();
    }}

    private static void add(java.util.List found, scala.collection.Iterator plans) {{
        while (plans.hasNext()) {{
            found.add(plans.next());
        }}
    }}

    private static boolean isScan(LogicalPlan plan) {{
        return plan instanceof MapInArrow && ((MapInArrow) plan).child() instanceof LogicalRDD
            && name(plan).startsWith("{PREFIX}");
    }}

    private static String name(LogicalPlan scan) {{
        return ((org.apache.spark.sql.catalyst.expressions.Attribute)
            ((MapInArrow) scan).child().output().head()).name();
    }}
}}
"""


def as_cached(df: DataFrame) -> DataFrame:
    """The same rows, from Spark's cache where a query of the same plan, with scans that read the same, is there."""
    own: Any = df._jdf  # noqa: SLF001 - plans have no public door
    try:
        found = instance(df.sparkSession, _SCANS, _SCANS_SOURCE, own).found()
    except Py4JError:
        logger.debug("Looking for cached scans failed", exc_info=True)
        return df
    return df if found.equals(own) else DataFrame(found, df.sparkSession)
