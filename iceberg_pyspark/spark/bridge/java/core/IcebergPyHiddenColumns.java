// Written from bridge/protocol by `make protocol`.
import java.util.Map;

/** Hidden columns, as a schema of Spark's. */
class IcebergPyHiddenColumns {
  private final Map fields;
  IcebergPyHiddenColumns(Map fields) { this.fields = fields; }
  String columns() { return (String) fields.get("columns"); }
}
