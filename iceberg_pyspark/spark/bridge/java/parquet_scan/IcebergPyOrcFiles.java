import java.util.Map;
import org.apache.spark.sql.connector.read.Scan;

/** ORC files that Python planned; their columns are found by name. */
public class IcebergPyOrcFiles extends IcebergPyParquetFiles {
  IcebergPyOrcFiles(org.apache.spark.sql.classic.SparkSession session, Map description, String key,
      IcebergPyPlannedFiles files) {
    super(session, description, key, files);
  }
  public boolean readsNestedFilters() { return false; }
  public IcebergPyFiles withFields(Map structs) { return null; }
  public Scan scan(org.apache.spark.sql.sources.Filter[] filters, Map scanDefinition,
      IcebergPySplits splits, Map statistics) {
    return new IcebergPyOrcScan(
        this, IcebergPyOrcFilters.skipping(filters, columns), scanDefinition, splits, statistics);
  }
}
