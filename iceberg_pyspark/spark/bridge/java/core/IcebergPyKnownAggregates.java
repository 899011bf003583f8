// Written from bridge/protocol by `make protocol`.
import java.util.List;
import java.util.Map;

/** A row for each group, its values and its aggregates; None where data must be read. */
class IcebergPyKnownAggregates {
  private final Map said;
  IcebergPyKnownAggregates(Map said) { this.said = said; }
  List rows() { return (List) said.get("rows"); }
}
