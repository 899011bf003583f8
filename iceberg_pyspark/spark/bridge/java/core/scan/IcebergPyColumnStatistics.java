import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.types.DataType;

/** Statistics of a column for Spark's cost-based optimizer. */
class IcebergPyColumnStatistics implements ColumnStatistics {
  private final long distinct, nulls;
  private final Object min, max;
  private IcebergPyColumnStatistics(long distinct, long nulls, Object min, Object max) {
    this.distinct = distinct;
    this.nulls = nulls;
    this.min = min;
    this.max = max;
  }
  public OptionalLong distinctCount() { return OptionalLong.of(distinct); }
  public OptionalLong nullCount() { return OptionalLong.of(nulls); }
  public Optional min() { return Optional.ofNullable(min); }
  public Optional max() { return Optional.ofNullable(max); }

  /** Return the statistics by column reference, from the response of Python. */
  static Map of(List columns) {
    Map out = new HashMap();
    for (int i = 0; i < columns.size(); i++) {
      IcebergPyColumnValueStatistics one = (IcebergPyColumnValueStatistics) columns.get(i);
      DataType type = DataType.fromJson(one.type());
      out.put(Expressions.column(IcebergPyBridge.quote(one.column())),
          new IcebergPyColumnStatistics(one.distinctCount(), one.nullCount(),
              IcebergPyValues.internal(one.minValue(), type),
              IcebergPyValues.internal(one.maxValue(), type)));
    }
    return out;
  }
}
