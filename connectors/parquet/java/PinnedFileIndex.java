/**
 * File index over a fixed list of files, which no write refreshes.
 *
 * A write refreshes each index, cached ones too, that has a root at or below its path. Roots elsewhere would avoid
 * that, but Spark also needs the roots to refuse overwriting a table from which the same query reads.
 *
 * It extends InMemoryFileIndex.
 */
public class PinnedFileIndex extends org.apache.spark.sql.execution.datasources.InMemoryFileIndex {
    public PinnedFileIndex(
        org.apache.spark.sql.SparkSession session,
        scala.collection.immutable.Seq roots,
        scala.collection.immutable.Map options,
        scala.Option schema,
        org.apache.spark.sql.execution.datasources.FileStatusCache cache,
        scala.Option partitions,
        scala.Option nanoseconds
    ) {
        super(session, roots, options, schema, cache, partitions, nanoseconds);
    }

    public void refresh() {}
}
