// Written from bridge/protocol by `make generate`.
import java.util.Map;

/** Whether the table existed. */
class IcebergPyDropResult {
  private final Map fields;
  IcebergPyDropResult(Map fields) { this.fields = fields; }
  boolean existed() { return ((Boolean) fields.get("existed")).booleanValue(); }
}
