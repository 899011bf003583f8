// Written from bridge/protocol by `make protocol`.
import java.util.Map;

/** The catalog's handle in later questions. */
class IcebergPyOpenedCatalog {
  private final Map fields;
  IcebergPyOpenedCatalog(Map fields) { this.fields = fields; }
  String handle() { return (String) fields.get("handle"); }
}
