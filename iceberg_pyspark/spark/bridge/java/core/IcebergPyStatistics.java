import java.util.OptionalLong;
import org.apache.spark.sql.connector.read.Statistics;

/** How large Spark takes a scan for. */
class IcebergPyStatistics implements Statistics {
  private final long size, rows;
  /** Of no rows it is not known how many they are: files of old writers do not say. */
  IcebergPyStatistics(long size, long rows) {
    this.size = size;
    this.rows = rows;
  }
  public OptionalLong sizeInBytes() { return OptionalLong.of(size); }
  public OptionalLong numRows() { return rows > 0 ? OptionalLong.of(rows) : OptionalLong.empty(); }
}
