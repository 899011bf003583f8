// Written from bridge/protocol by `make protocol`.
import java.util.Map;

/** The catalog's handle in later requests. */
class IcebergPyCatalogHandle {
  private final Map fields;
  IcebergPyCatalogHandle(Map fields) { this.fields = fields; }
  String handle() { return (String) fields.get("handle"); }
}
