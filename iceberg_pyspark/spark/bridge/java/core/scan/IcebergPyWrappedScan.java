import org.apache.spark.sql.connector.read.Scan;

/** A scan that adds to a scan of Spark's Python data source what that one lacks. */
public interface IcebergPyWrappedScan extends Scan {
  Scan wrapped();
}
