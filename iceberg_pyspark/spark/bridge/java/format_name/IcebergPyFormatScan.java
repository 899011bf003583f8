import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A scan of Spark's Python data source; as a stream, it is a stream of the table. */
class IcebergPyFormatScan implements IcebergPyWrappedScan {
  private final Scan scan;
  private final Map options;
  /** `options` name the table. */
  IcebergPyFormatScan(Scan scan, Map options) {
    this.scan = scan;
    this.options = options;
  }
  public Scan wrapped() { return scan; }
  public StructType readSchema() { return scan.readSchema(); }
  public String description() { return scan.description(); }
  public Batch toBatch() { return scan.toBatch(); }
  public Scan.ColumnarSupportMode columnarSupportMode() { return scan.columnarSupportMode(); }
  public CustomMetric[] supportedCustomMetrics() { return scan.supportedCustomMetrics(); }
  public CustomTaskMetric[] reportDriverMetrics() { return scan.reportDriverMetrics(); }
  public MicroBatchStream toMicroBatchStream(String checkpoint) {
    return new IcebergPyStream((String) options.get("path"), null,
        IcebergPyFormat.tableOptions(options),
        new IcebergPySplits(new CaseInsensitiveStringMap(options), new HashMap()), checkpoint);
  }
}
