// Written from bridge/protocol by `make generate`.
import java.util.List;
import java.util.Map;

/** A row for each group, its values and its aggregates; None if all data files must be read. */
class IcebergPyAggregateRows {
  private final Map fields;
  IcebergPyAggregateRows(Map fields) { this.fields = fields; }
  List rows() { return (List) fields.get("rows"); }
  List otherFiles() { return (List) fields.get("other_files"); }
}
