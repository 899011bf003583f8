import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;

/** The files of one batch in the form of a stream; equal to the stream that they are of. */
public class IcebergPyBatchFiles implements MicroBatchStream {
  final IcebergPyStream stream;
  private final Batch batch;
  /** `batch` is null if Spark reads no files. */
  IcebergPyBatchFiles(IcebergPyStream stream, Batch batch) {
    this.stream = stream;
    this.batch = batch;
  }
  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    return batch == null ? new InputPartition[0] : batch.planInputPartitions();
  }
  public PartitionReaderFactory createReaderFactory() {
    return batch == null ? null : batch.createReaderFactory();
  }
  public Offset latestOffset() { throw new UnsupportedOperationException("of the stream only"); }
  public Offset initialOffset() { return stream.initialOffset(); }
  public Offset deserializeOffset(String json) { return stream.deserializeOffset(json); }
  public void commit(Offset end) {}
  public void stop() {}
  public boolean equals(Object other) {
    return other == stream
        || other instanceof IcebergPyBatchFiles && ((IcebergPyBatchFiles) other).stream == stream;
  }
  public int hashCode() { return stream.hashCode(); }
  public String toString() { return stream.toString(); }
}
