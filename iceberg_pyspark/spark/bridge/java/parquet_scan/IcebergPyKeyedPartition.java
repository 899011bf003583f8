import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/** The files of one group, with the key for the driver; executors get Spark's own class. */
public class IcebergPyKeyedPartition extends FilePartition implements HasPartitionKey {
  private final transient InternalRow key;
  IcebergPyKeyedPartition(int index, PartitionedFile[] files, InternalRow key) {
    super(index, files);
    this.key = key;
  }
  public InternalRow partitionKey() { return key; }
  public Object writeReplace() { return new FilePartition(index(), files()); }
}
