import org.apache.hadoop.fs.Path;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/** A split of an encrypted Parquet file, with its key, which tasks hold while they read it. */
public class IcebergPyEncryptedFile extends PartitionedFile {
  private final byte[][] key;

  IcebergPyEncryptedFile(InternalRow constants, SparkPath file, long start, long length,
      String[] hosts, long size, byte[][] key) {
    super(constants, file, start, length, hosts, 0L, size,
        scala.collection.immutable.Map$.MODULE$.empty());
    this.key = key;
  }
  /** Return the same split with another length. */
  IcebergPyEncryptedFile withLength(long length) {
    return new IcebergPyEncryptedFile(
        partitionValues(), filePath(), start(), length, locations(), fileSize(), key);
  }

  // not private: Janino makes static methods of those
  public Object readResolve() {
    Path path = filePath().toPath();
    return new IcebergPyEncryptedFile(partitionValues(), filePath(), start(), length(), locations(),
        fileSize(), IcebergPyFileKeys.hold(path, key));
  }
}
