// Written from bridge/protocol by `make protocol`.
import java.util.List;
import java.util.Map;

/** The answer to any question that fails: Java raises it. */
class IcebergPyFailure {
  private final Map said;
  IcebergPyFailure(Map said) { this.said = said; }
  String error() { return (String) said.get("error"); }
  String message() { return (String) said.get("message"); }
  List namespace() { return (List) said.get("namespace"); }
  String name() { return (String) said.get("name"); }
}
