import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.types.DataType;

/** What Spark's cost-based optimizer is told of a column. */
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

  /** By references to columns, as Python says it of a table. */
  static Map of(String json) {
    Map out = new HashMap();
    try {
      Iterator all = ((Map) IcebergPyBridge.JSON.readValue(json, Map.class)).entrySet().iterator();
      while (all.hasNext()) {
        Map.Entry one = (Map.Entry) all.next();
        List cells = (List) one.getValue();
        DataType type = DataType.fromJson((String) cells.get(0));
        out.put(Expressions.column("`" + ((String) one.getKey()).replace("`", "``") + "`"),
            new IcebergPyColumnStatistics(Long.parseLong((String) cells.get(1)),
                Long.parseLong((String) cells.get(2)),
                IcebergPyCells.value((String) cells.get(3), type),
                IcebergPyCells.value((String) cells.get(4), type)));
      }
    } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
    return out;
  }
}
