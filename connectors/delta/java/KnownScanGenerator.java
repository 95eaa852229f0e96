import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.stats.DeltaScan;
import org.apache.spark.sql.delta.stats.DeltaScanGenerator;
import scala.collection.immutable.Seq;

/**
 * Scans of one version of a table: those that a ListingPass knows, and else those that Delta lists.
 *
 * It implements Delta's DeltaScanGenerator.
 */
public class KnownScanGenerator implements DeltaScanGenerator {
    private final DeltaScanGenerator deltas;
    private final ListingPass pass;

    KnownScanGenerator(DeltaScanGenerator deltas, ListingPass pass) {
        this.deltas = deltas;
        this.pass = pass;
    }

    public Snapshot snapshotToScan() {
        return deltas.snapshotToScan();
    }

    public Dataset filesWithStatsForScan(Seq partitionFilters) {
        return (Dataset) deltas.filesWithStatsForScan(partitionFilters);
    }

    public DeltaScan filesForScan(Seq filters, boolean keepsNumRecords) {
        DeltaScan known = keepsNumRecords ? null : pass.scan(deltas.snapshotToScan(), filters);
        return known == null ? deltas.filesForScan(filters, keepsNumRecords) : known;
    }

    public DeltaScan filesForScan(long limit, Seq partitionFilters) {
        DeltaScan unlisted = pass.unlisted(deltas.snapshotToScan());
        return unlisted == null ? deltas.filesForScan(limit, partitionFilters) : unlisted;
    }
}
