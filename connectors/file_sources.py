"""Whether somebody may ask for the file of a query's rows after the query itself: `input_file_name()` and the like."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from connectors.compiled import instance

# Spark lets rows be asked for their file where they come from one source of files alone, of which the branches of a
# union may each have one, and refuses it for any other query; what cached rows were made of counts, and plans inside
# expressions do not. Its answer is empty above an aggregate: no file is open where groups are made. The same goes for
# the columns of `_metadata`, which no aggregate hands on.
_SOURCES = "FileSources"
_SOURCES_SOURCE = """
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Deduplicate;
import org.apache.spark.sql.catalyst.plans.logical.Distinct;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

public class FileSources {
    private static final int SEVERAL = 2;
    private final LogicalPlan plan;

    public FileSources(LogicalPlan plan) {
        this.plan = plan;
    }

    public boolean mayBeAskedFor() {
        return count(plan) < SEVERAL && isOpenAbove(plan);
    }

    private static boolean isSource(LogicalPlan plan) {
        return plan instanceof HiveTableRelation
            || plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation;
    }

    private static int count(LogicalPlan plan) {
        int sum = isSource(plan) ? 1 : 0;
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            int found = count((LogicalPlan) children.next());
            sum = plan instanceof Union ? Math.max(sum, found) : sum + found;
        }
        return sum;
    }

    private static boolean isOpenAbove(LogicalPlan plan) {
        if (plan instanceof Aggregate || plan instanceof Distinct || plan instanceof Deduplicate) {
            return false;
        }
        boolean isIt = isSource(plan);
        scala.collection.Iterator children = plan.children().iterator();
        while (!isIt && children.hasNext()) {
            isIt = isOpenAbove((LogicalPlan) children.next());
        }
        return isIt;
    }
}
"""


def may_be_asked_for_files(spark: SparkSession, analyzed: Any) -> bool:
    """Whether Spark would tell the file of rows of an analysed plan, if it read all files itself."""
    return bool(instance(spark, _SOURCES, _SOURCES_SOURCE, analyzed).mayBeAskedFor())
