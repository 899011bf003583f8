// Written from bridge/protocol by `make protocol`.
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The columns of which something is known. */
class IcebergPyKnownStatistics {
  private final Map said;
  IcebergPyKnownStatistics(Map said) { this.said = said; }
  List columns() {
    List all = (List) said.get("columns"), made = new ArrayList();
    for (int i = 0; i < all.size(); i++) made.add(new IcebergPyColumnFacts((Map) all.get(i)));
    return made;
  }
}
