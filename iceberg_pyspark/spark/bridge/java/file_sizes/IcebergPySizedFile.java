import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/**
 * A split of a file whose size is in the path by which a task opens it. Errors and
 * `input_file_name()` show the file's path in its store, without the size and without the part of
 * the scheme that stands for a catalog's credentials.
 */
public class IcebergPySizedFile extends PartitionedFile {
  private final String displayPath;

  IcebergPySizedFile(InternalRow constants, SparkPath file, long size, long start, long length,
      String[] hosts, scala.collection.immutable.Map metadata) {
    super(constants, SparkPath.fromUrlString(IcebergPySizedFiles.withSize(file.urlEncoded(), size)),
        start, length, hosts, 0L, size, metadata);
    displayPath = IcebergPySizedFiles.inStore(file.urlEncoded());
  }

  public String urlEncodedPath() { return displayPath; }
}
