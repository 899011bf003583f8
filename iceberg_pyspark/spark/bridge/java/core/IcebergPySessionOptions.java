// Written from bridge/protocol by `make protocol`.
import java.util.Map;

/** The options, and where they name a table of a catalog of the session, how to open it. */
class IcebergPySessionOptions {
  private final Map fields;
  IcebergPySessionOptions(Map fields) { this.fields = fields; }
  Map options() { return (Map) fields.get("options"); }
}
