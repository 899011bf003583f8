// Written from bridge/protocol by `make protocol`.
import java.util.Map;

/** What is known of the values of a column. */
class IcebergPyColumnFacts {
  private final Map said;
  IcebergPyColumnFacts(Map said) { this.said = said; }
  String column() { return (String) said.get("column"); }
  String type() { return (String) said.get("type"); }
  long distinctCount() { return ((Number) said.get("distinct_count")).longValue(); }
  long nullCount() { return ((Number) said.get("null_count")).longValue(); }
  Object least() { return said.get("least"); }
  Object greatest() { return said.get("greatest"); }
}
