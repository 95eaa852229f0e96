import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import scala.collection.immutable.Seq;

/**
 * List of the files of each leaf of a plan that reads Parquet, with size, time and partition, as Spark listed them.
 *
 * A file may be overwritten, so each is checked: size and time must be the listed ones, and the time long enough ago
 * that no later write can have the same. A leaf whose files are not pinned or have changed has no list of files but,
 * after an exclamation mark, the reason.
 *
 * It relies on the name of PinnedFileIndex, which is loaded by another class loader, and on FileIndex.listFiles().
 */
public class ListedFiles extends java.util.ArrayList {
    private static final String PINNED_INDEX = "PinnedFileIndex";
    private final SparkSession session;
    private final long settled;
    private final long mostFiles;

    public ListedFiles(SparkSession session, java.util.List leaves, Number settledMilliseconds, Number mostFiles)
        throws java.io.IOException {
        this.session = session;
        this.settled = settledMilliseconds.longValue();
        this.mostFiles = mostFiles.longValue();
        for (int at = 0; at < leaves.size(); at++) {
            add(files((HadoopFsRelation) ((LogicalRelation) leaves.get(at)).relation()));
        }
    }

    private Object files(HadoopFsRelation relation) throws java.io.IOException {
        if (relation.fileFormat().getClass() != ParquetFileFormat.class) {
            return "!it reads files by " + relation.fileFormat().getClass().getSimpleName();
        }
        FileIndex index = relation.location();
        if (!index.getClass().getName().equals(PINNED_INDEX)) {
            return "!the files of a " + index.getClass().getSimpleName() + " are not pinned";
        }
        java.util.TreeMap found = new java.util.TreeMap();
        java.util.ArrayList files = new java.util.ArrayList();
        Seq none = scala.jdk.javaapi.CollectionConverters.asScala(new java.util.ArrayList()).toSeq();
        scala.collection.Iterator partitions = index.listFiles(none, none).iterator();
        while (partitions.hasNext()) {
            PartitionDirectory partition = (PartitionDirectory) partitions.next();
            Object values = partition.values().toSeq(relation.partitionSchema());
            scala.collection.Iterator each = partition.files().iterator();
            while (each.hasNext()) {
                FileStatus file = ((FileStatusWithMetadata) each.next()).fileStatus();
                // A file that is listed twice is read twice.
                found.put(file.getPath().toString() + '\0' + files.size(), java.util.Arrays.asList(new Object[] {
                    file.getPath().toString(), Long.valueOf(file.getLen()),
                    Long.valueOf(file.getModificationTime()), values}));
                files.add(file);
            }
        }
        String why = files.size() > mostFiles ? "it reads more than " + mostFiles + " Parquet files"
            : unsettled(files, session.sessionState().newHadoopConfWithOptions(relation.options()));
        return why.isEmpty() ? (Object) new java.util.ArrayList(found.values()) : "!" + why;
    }

    private String unsettled(java.util.List files, Configuration conf) throws java.io.IOException {
        for (int at = 0; at < files.size(); at++) {
            FileStatus listed = (FileStatus) files.get(at);
            try {
                FileStatus found = listed.getPath().getFileSystem(conf).getFileStatus(listed.getPath());
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
}
