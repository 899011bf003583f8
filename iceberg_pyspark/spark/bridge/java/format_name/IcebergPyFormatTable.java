import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.types.StructType;

/**
 * A table of the format: Spark hands its writes over whole, with their mode, instead of refusing
 * the modes that need a catalog.
 */
public class IcebergPyFormatTable extends PythonTable {
  IcebergPyFormatTable(IcebergPyFormat format, StructType schema) {
    super(format, IcebergPyFormat.NAME, schema);
  }
  public Set capabilities() {
    Set all = new HashSet(super.capabilities());
    // a view may outlast uninstall()
    if (IcebergPyFormat.isInstalled() && all.remove(TableCapability.BATCH_WRITE))
      all.add(TableCapability.V1_BATCH_WRITE);
    return all;
  }
}
