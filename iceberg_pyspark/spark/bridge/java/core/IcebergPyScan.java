import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Stands in the optimized plan until `IcebergPyRule` puts the plan Python made in its place. */
public class IcebergPyScan implements Scan, SupportsReportStatistics {
  final IcebergPyTable table;
  final CaseInsensitiveStringMap options;
  private final StructType schema;
  public IcebergPyScan(IcebergPyTable table, CaseInsensitiveStringMap options, StructType schema) {
    this.table = table;
    this.options = options;
    this.schema = schema;
  }
  public StructType readSchema() { return schema; }
  public String description() { return "iceberg-py " + table.name(); }
  public Statistics estimateStatistics() { return new IcebergPyStatistics(table.sizeInBytes()); }
  public boolean equals(Object other) {
    return other instanceof IcebergPyScan && ((IcebergPyScan) other).table.equals(table)
        && ((IcebergPyScan) other).schema.equals(schema)
        && ((IcebergPyScan) other).options.equals(options);
  }
  public int hashCode() { return table.hashCode(); }
}
