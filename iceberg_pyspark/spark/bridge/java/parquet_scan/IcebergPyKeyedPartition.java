import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/** Files of one group, whose key the driver plans by; executors get a class of Spark's own. */
public class IcebergPyKeyedPartition extends FilePartition implements HasPartitionKey {
  private final transient InternalRow key;
  IcebergPyKeyedPartition(int index, PartitionedFile[] files, InternalRow key) {
    super(index, files);
    this.key = key;
  }
  public InternalRow partitionKey() { return key; }
  public Object writeReplace() { return new FilePartition(index(), files()); }
}
