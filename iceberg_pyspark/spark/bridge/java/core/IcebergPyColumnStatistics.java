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
  private final Object least, greatest;
  private IcebergPyColumnStatistics(long distinct, long nulls, Object least, Object greatest) {
    this.distinct = distinct;
    this.nulls = nulls;
    this.least = least;
    this.greatest = greatest;
  }
  public OptionalLong distinctCount() { return OptionalLong.of(distinct); }
  public OptionalLong nullCount() { return OptionalLong.of(nulls); }
  public Optional min() { return Optional.ofNullable(least); }
  public Optional max() { return Optional.ofNullable(greatest); }

  /** Return the statistics by column reference, from the answer of Python. */
  static Map of(List columns) {
    Map out = new HashMap();
    for (int i = 0; i < columns.size(); i++) {
      IcebergPyColumnFacts one = (IcebergPyColumnFacts) columns.get(i);
      DataType type = DataType.fromJson(one.type());
      out.put(Expressions.column(IcebergPyBridge.quote(one.column())),
          new IcebergPyColumnStatistics(one.distinctCount(), one.nullCount(),
              IcebergPyValues.internal(one.least(), type),
              IcebergPyValues.internal(one.greatest(), type)));
    }
    return out;
  }
}
