import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/** A placeholder of the writes of a stream, each of which `IcebergPyStrategy` replaces. */
public class IcebergPyStreamingWrite implements StreamingWrite {
  final IcebergPyTable table;
  final LogicalWriteInfo info;
  IcebergPyStreamingWrite(IcebergPyTable table, LogicalWriteInfo info) {
    this.table = table;
    this.info = info;
  }
  public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo physical) {
    throw new IllegalStateException("the batches are written by IcebergPyEpoch");
  }
  public void commit(long epoch, WriterCommitMessage[] messages) {
    throw new IllegalStateException("the batches are written by IcebergPyEpoch");
  }
  public void abort(long epoch, WriterCommitMessage[] messages) {}
}
