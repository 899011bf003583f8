// Written from bridge/protocol by `make generate`.
import java.util.List;
import java.util.Map;

/** The catalog's handle in later requests, and what Spark asks of the catalog itself. */
class IcebergPyCatalogHandle {
  private final Map fields;
  IcebergPyCatalogHandle(Map fields) { this.fields = fields; }
  String handle() { return (String) fields.get("handle"); }
  List defaultNamespace() { return (List) fields.get("default_namespace"); }
  String release() { return (String) fields.get("release"); }
}
