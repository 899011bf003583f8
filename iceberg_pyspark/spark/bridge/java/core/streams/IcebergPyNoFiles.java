import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;

/**
 * A scan of no files beside the files of a batch that Python reads. It makes the plan that of a
 * stream, without which Spark plans no stateful operators; see `IcebergPyPythonsRows`.
 */
public class IcebergPyNoFiles implements Scan {
  final long pythonsRows;
  private final StructType schema;
  IcebergPyNoFiles(StructType schema, long pythonsRows) {
    this.schema = schema;
    this.pythonsRows = pythonsRows;
  }
  public StructType readSchema() { return schema; }
  public Scan.ColumnarSupportMode columnarSupportMode() {
    return Scan.ColumnarSupportMode.UNSUPPORTED;
  }
}
