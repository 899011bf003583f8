// Written from bridge/protocol by `make generate`.
import java.util.Map;

/** The hidden columns, as a Spark schema in JSON. */
class IcebergPyHiddenColumns {
  private final Map fields;
  IcebergPyHiddenColumns(Map fields) { this.fields = fields; }
  String columns() { return (String) fields.get("columns"); }
}
