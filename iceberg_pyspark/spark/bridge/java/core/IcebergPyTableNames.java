// Written from bridge/protocol by `make protocol`.
import java.util.List;
import java.util.Map;

/** Names in one namespace. */
class IcebergPyTableNames {
  private final Map said;
  IcebergPyTableNames(Map said) { this.said = said; }
  List names() { return (List) said.get("names"); }
}
