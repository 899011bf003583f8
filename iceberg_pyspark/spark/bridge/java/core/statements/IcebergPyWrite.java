import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;

/** A placeholder of a write to an Iceberg table, which `IcebergPyStrategy` replaces. */
class IcebergPyWrite implements Write, WriteBuilder, SupportsTruncate, SupportsOverwriteV2,
                                SupportsDynamicOverwrite, SupportsStreamingUpdateAsAppend {
  final IcebergPyTable table;
  private final LogicalWriteInfo info;
  IcebergPyWrite(IcebergPyTable table, LogicalWriteInfo info) {
    this.table = table;
    this.info = info;
  }
  public Write build() { return this; }
  public WriteBuilder truncate() { return this; }
  public StreamingWrite toStreaming() { return new IcebergPyStreamingWrite(table, info); }
  public boolean canOverwrite(
      org.apache.spark.sql.connector.expressions.filter.Predicate[] predicates) {
    return true;
  }
  public WriteBuilder overwrite(
      org.apache.spark.sql.connector.expressions.filter.Predicate[] predicates) {
    return this;
  }
  public WriteBuilder overwriteDynamicPartitions() { return this; }
  public String description() { return "iceberg-py " + table.name(); }
}
