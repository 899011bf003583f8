// Written from bridge/protocol by `make generate`.
import java.util.Map;

/** The options, completed with the catalog settings of a table of the session. */
class IcebergPySessionOptions {
  private final Map fields;
  IcebergPySessionOptions(Map fields) { this.fields = fields; }
  Map options() { return (Map) fields.get("options"); }
}
