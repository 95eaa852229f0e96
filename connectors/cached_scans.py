"""Pruned queries that are cached, found again though their scans are made by pyarrow."""

from __future__ import annotations

import logging
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from connectors.compiled import instance
from connectors.task_ids import PREFIX

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
