import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Scans of files among the nodes of an analysed or an optimised plan.
 *
 * It relies on LogicalRelation and HadoopFsRelation.
 */
public class FileScan {
    private FileScan() {}

    /**
     * The files that a node reads; null for a node that is no scan of files.
     */
    static HadoopFsRelation files(LogicalPlan node) {
        boolean isScan = node instanceof LogicalRelation
            && ((LogicalRelation) node).relation() instanceof HadoopFsRelation;
        return isScan ? (HadoopFsRelation) ((LogicalRelation) node).relation() : null;
    }
}
