import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;

/**
 * A scan of no files in the plan of a batch. Spark takes the rows of a source from this count of
 * its scans, and would not know of the rows that Python reads.
 */
public class IcebergPyPythonsRows extends MicroBatchScanExec {
  private scala.collection.immutable.Map metrics;
  /** Spark copies a plan by this constructor. */
  public IcebergPyPythonsRows(scala.collection.immutable.Seq output, Scan scan,
      MicroBatchStream stream, Offset start, Offset end, scala.Option keys, scala.Option order) {
    super(output, scan, stream, start, end, keys, order);
  }
  public synchronized scala.collection.immutable.Map metrics() {
    if (metrics == null) {
      SQLMetric rows = SQLMetrics.createMetric(sparkContext(), "number of rows that Python reads");
      rows.set(((IcebergPyNoFiles) scan()).pythonsRows);
      metrics = new scala.collection.immutable.Map.Map1("numOutputRows", rows);
    }
    return metrics;
  }
  public boolean canEqual(Object other) { return other instanceof IcebergPyPythonsRows; }
}
