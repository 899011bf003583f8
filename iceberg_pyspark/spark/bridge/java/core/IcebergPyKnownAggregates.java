// Written from bridge/protocol by `make protocol`.
import java.util.List;
import java.util.Map;

/** A row for each group, its values and its aggregates; None if data files must be read. */
class IcebergPyKnownAggregates {
  private final Map fields;
  IcebergPyKnownAggregates(Map fields) { this.fields = fields; }
  List rows() { return (List) fields.get("rows"); }
}
