import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A builder of scans that accepts the columns that a query needs. */
class IcebergPyScanBuilder implements ScanBuilder, SupportsPushDownRequiredColumns {
  private final IcebergPyTable table;
  private final CaseInsensitiveStringMap options;
  private StructType schema;
  IcebergPyScanBuilder(IcebergPyTable table, CaseInsensitiveStringMap options) {
    this.table = table;
    this.options = options;
    this.schema = table.schema();
  }
  public void pruneColumns(StructType required) { this.schema = required; }
  public Scan build() { return new IcebergPyScan(table, options, schema, null); }
}
