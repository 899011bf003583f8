// Written from bridge/protocol by `make generate`.
import java.util.Map;

/** The statistics of a column's values. */
class IcebergPyColumnValueStatistics {
  private final Map fields;
  IcebergPyColumnValueStatistics(Map fields) { this.fields = fields; }
  String column() { return (String) fields.get("column"); }
  String type() { return (String) fields.get("type"); }
  long distinctCount() { return ((Number) fields.get("distinct_count")).longValue(); }
  long nullCount() { return ((Number) fields.get("null_count")).longValue(); }
  Object minValue() { return fields.get("min_value"); }
  Object maxValue() { return fields.get("max_value"); }
}
