// Written from bridge/protocol by `make protocol`.
import java.util.Map;

/** What a namespace has. */
class IcebergPyNamespaceFacts {
  private final Map said;
  IcebergPyNamespaceFacts(Map said) { this.said = said; }
  Map properties() { return (Map) said.get("properties"); }
}
