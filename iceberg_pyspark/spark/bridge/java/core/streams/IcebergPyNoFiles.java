import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;

/**
 * A scan of no files beside the files of a batch that Python reads. It makes the plan that of a
 * stream, without which Spark plans no stateful operators, and counts Python's rows as input.
 */
public class IcebergPyNoFiles implements Scan {
  private static final String COUNT_OF_SPARK = "numOutputRows";
  private final StructType schema;
  private final IcebergPyMetric rows;
  IcebergPyNoFiles(StructType schema, long rows) {
    this.schema = schema;
    this.rows = new IcebergPyMetric(COUNT_OF_SPARK, "number of rows that Python reads", rows);
  }
  public StructType readSchema() { return schema; }
  public Scan.ColumnarSupportMode columnarSupportMode() {
    return Scan.ColumnarSupportMode.UNSUPPORTED;
  }
  public CustomMetric[] supportedCustomMetrics() { return new CustomMetric[] {rows}; }
  public CustomTaskMetric[] reportDriverMetrics() { return new CustomTaskMetric[] {rows}; }
}
