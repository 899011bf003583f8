// Written from bridge/protocol by `make protocol`.
import java.util.List;
import java.util.Map;

/** Namespaces, each by its levels. */
class IcebergPyNamespaces {
  private final Map said;
  IcebergPyNamespaces(Map said) { this.said = said; }
  List namespaces() { return (List) said.get("namespaces"); }
}
