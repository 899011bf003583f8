import java.util.OptionalLong;
import org.apache.spark.sql.connector.read.Statistics;

/** How large Spark takes a scan for. */
class IcebergPyStatistics implements Statistics {
  private final long size;
  IcebergPyStatistics(long size) { this.size = size; }
  public OptionalLong sizeInBytes() { return OptionalLong.of(size); }
  public OptionalLong numRows() { return OptionalLong.empty(); }
}
