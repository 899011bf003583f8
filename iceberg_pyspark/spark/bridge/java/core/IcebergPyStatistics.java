import java.util.Map;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.read.Statistics;

/** How large Spark takes a scan for. */
class IcebergPyStatistics implements Statistics {
  private final long size, rows;
  private final Map columns;
  /**
   * Of no rows it is not known how many they are: files of old writers do not say. `columns` has
   * what is known of some columns by their references.
   */
  IcebergPyStatistics(long size, long rows, Map columns) {
    this.size = size;
    this.rows = rows;
    this.columns = columns;
  }
  public OptionalLong sizeInBytes() { return OptionalLong.of(size); }
  public OptionalLong numRows() { return rows > 0 ? OptionalLong.of(rows) : OptionalLong.empty(); }
  public Map columnStats() { return columns; }
}
