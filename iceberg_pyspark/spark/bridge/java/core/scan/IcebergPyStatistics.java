import java.util.Map;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.read.Statistics;

/** The size of a scan, as Spark is told. */
class IcebergPyStatistics implements Statistics {
  private final long size, rows;
  private final Map columns;
  /**
   * If `rows` is 0, the count is unknown, because old writers do not record it. `columns` maps
   * column references to statistics.
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
