import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.types.StructType;

/**
 * The columns of a table while Spark assigns values to them. Spark does so by name for a table of
 * this interface, and it would also plan its changes: so no plan has it when this is done.
 */
class IcebergPyAssignedColumns implements SupportsRowLevelOperations {
  private final String name;
  private final StructType schema;
  IcebergPyAssignedColumns(Table table) { this(table.name(), table.schema()); }
  IcebergPyAssignedColumns(String name, StructType schema) {
    this.name = name;
    this.schema = schema;
  }
  public String name() { return name; }
  public StructType schema() { return schema; }
  public Set capabilities() { return new HashSet(); }
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    throw new UnsupportedOperationException(name);
  }
}
