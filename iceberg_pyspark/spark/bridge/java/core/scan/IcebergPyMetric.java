import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** A number from the driver that Spark's UI shows at a scan. */
public class IcebergPyMetric extends CustomSumMetric implements CustomTaskMetric {
  private final String name, description;
  private final long value;
  /** For Spark's UI, which only adds values. */
  public IcebergPyMetric() { this("", "", 0); }
  IcebergPyMetric(String name, String description, long value) {
    this.name = name;
    this.description = description;
    this.value = value;
  }
  public String name() { return name; }
  public String description() { return description; }
  public long value() { return value; }
}
