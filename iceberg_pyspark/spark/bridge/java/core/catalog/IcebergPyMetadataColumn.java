import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;

/** A hidden column, which `*` does not select. */
class IcebergPyMetadataColumn implements MetadataColumn {
  private final StructField field;
  IcebergPyMetadataColumn(StructField field) { this.field = field; }
  public String name() { return field.name(); }
  public DataType dataType() { return field.dataType(); }
  public boolean isNullable() { return field.nullable(); }
}
