/**
 * File index over a fixed list of files, which no write refreshes.
 *
 * A write refreshes each index, cached ones too, that has a root at or below its path. Roots elsewhere would avoid
 * that, but Spark also needs the roots to refuse overwriting a table from which the same query reads.
 *
 * Files of a table without partitions are given one by one: Spark reads a file as often as a reader names it, which its
 * own map of files by their paths would not tell.
 *
 * It extends InMemoryFileIndex, and overrides allFiles().
 */
public class PinnedFileIndex extends org.apache.spark.sql.execution.datasources.InMemoryFileIndex {
    private final scala.Option files;

    public PinnedFileIndex(
        org.apache.spark.sql.SparkSession session,
        scala.collection.immutable.Seq roots,
        scala.collection.immutable.Map options,
        scala.Option schema,
        org.apache.spark.sql.execution.datasources.FileStatusCache cache,
        scala.Option partitions,
        scala.Option files
    ) {
        super(session, roots, options, schema, cache, partitions, scala.Option.empty());
        this.files = files;
    }

    public scala.collection.immutable.Seq allFiles() {
        return files == null || files.isEmpty() ? super.allFiles() : (scala.collection.immutable.Seq) files.get();
    }

    public void refresh() {}
}
