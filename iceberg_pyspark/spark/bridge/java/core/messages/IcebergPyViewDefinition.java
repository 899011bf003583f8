// Written from bridge/protocol by `make generate`.
import java.util.List;
import java.util.Map;

/** A view's query in Spark's dialect, and where its names without a catalog or namespace are. */
class IcebergPyViewDefinition {
  private final Map fields;
  IcebergPyViewDefinition(Map fields) { this.fields = fields; }
  boolean exists() { return ((Boolean) fields.get("exists")).booleanValue(); }
  String sql() { return (String) fields.get("sql"); }
  String currentCatalog() { return (String) fields.get("current_catalog"); }
  List currentNamespace() { return (List) fields.get("current_namespace"); }
  String schema() { return (String) fields.get("schema"); }
}
