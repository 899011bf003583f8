// Written from bridge/protocol by `make generate`.
import java.util.Map;

/** Whether a namespace or a table exists. */
class IcebergPyExistence {
  private final Map fields;
  IcebergPyExistence(Map fields) { this.fields = fields; }
  boolean exists() { return ((Boolean) fields.get("exists")).booleanValue(); }
}
