// Written from bridge/protocol by `make protocol`.
import java.util.Map;

/** Whether there was such a table. */
class IcebergPyDropped {
  private final Map said;
  IcebergPyDropped(Map said) { this.said = said; }
  boolean dropped() { return ((Boolean) said.get("dropped")).booleanValue(); }
}
