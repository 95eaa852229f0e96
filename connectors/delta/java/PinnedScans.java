import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.DeltaTableUtils$;
import org.apache.spark.sql.delta.stats.DeltaScan;
import org.apache.spark.sql.delta.stats.DeltaScanGenerator;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.immutable.Seq;

/**
 * The rule for an optimised plan whose scans Delta leaves alone: they are pinned, and their files are skipped by
 * conditions. Limits, counts from metadata and generated columns stay those of the plan.
 *
 * It relies on the parts of PrepareDeltaScan that it replaces.
 */
public class PinnedScans extends ListedScans {
    PinnedScans(EarlyLists lists, SparkSession session) {
        super(lists, session);
    }

    boolean isListed(LogicalPlan plan) {
        return true;
    }

    public LogicalPlan optimizeQueryWithMetadata(LogicalPlan plan) {
        return plan;
    }

    public DeltaScan filesForScan(DeltaScanGenerator generator, scala.Option limit, Seq filters, LogicalRelation leaf) {
        return generator.filesForScan(filters, false);
    }

    public LogicalPlan optimizeGeneratedColumns(LogicalPlan scan, PreparedDeltaFileIndex index, Seq filters,
        scala.Option limit, LogicalRelation leaf) {
        return DeltaTableUtils$.MODULE$.replaceFileIndex(scan, index);
    }
}
