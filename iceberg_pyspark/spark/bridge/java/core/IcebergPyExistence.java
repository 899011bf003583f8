// Written from bridge/protocol by `make protocol`.
import java.util.Map;

/** Whether it is there. */
class IcebergPyExistence {
  private final Map said;
  IcebergPyExistence(Map said) { this.said = said; }
  boolean exists() { return ((Boolean) said.get("exists")).booleanValue(); }
}
