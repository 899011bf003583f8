// Written from bridge/protocol by `make protocol`.
import java.util.Map;

/** The options, and where they name a table of a catalog of the session, how to open it. */
class IcebergPySessionOptions {
  private final Map said;
  IcebergPySessionOptions(Map said) { this.said = said; }
  Map options() { return (Map) said.get("options"); }
}
