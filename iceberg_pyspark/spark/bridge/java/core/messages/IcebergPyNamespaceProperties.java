// Written from bridge/protocol by `make generate`.
import java.util.Map;

/** The properties of a namespace. */
class IcebergPyNamespaceProperties {
  private final Map fields;
  IcebergPyNamespaceProperties(Map fields) { this.fields = fields; }
  Map properties() { return (Map) fields.get("properties"); }
}
