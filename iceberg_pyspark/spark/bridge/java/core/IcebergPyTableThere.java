// Written from bridge/protocol by `make protocol`.
import java.util.List;
import java.util.Map;

/** The table that is there; no name where there is none. */
class IcebergPyTableThere {
  private final Map said;
  IcebergPyTableThere(Map said) { this.said = said; }
  List namespace() { return (List) said.get("namespace"); }
  String name() { return (String) said.get("name"); }
}
