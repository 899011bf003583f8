// Written from bridge/protocol by `make protocol`.
import java.util.List;
import java.util.Map;

/** Where the JVM finds the files that are left; None: all are. */
class IcebergPyKeptFiles {
  private final Map said;
  IcebergPyKeptFiles(Map said) { this.said = said; }
  List locations() { return (List) said.get("locations"); }
}
