// Written from bridge/protocol by `make protocol`.
import java.util.Map;

/** What questions call the catalog. */
class IcebergPyOpenedCatalog {
  private final Map said;
  IcebergPyOpenedCatalog(Map said) { this.said = said; }
  String handle() { return (String) said.get("handle"); }
}
