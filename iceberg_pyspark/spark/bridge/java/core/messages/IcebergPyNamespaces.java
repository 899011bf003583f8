// Written from bridge/protocol by `make generate`.
import java.util.List;
import java.util.Map;

/** Namespaces, each as a tuple of levels. */
class IcebergPyNamespaces {
  private final Map fields;
  IcebergPyNamespaces(Map fields) { this.fields = fields; }
  List namespaces() { return (List) fields.get("namespaces"); }
}
