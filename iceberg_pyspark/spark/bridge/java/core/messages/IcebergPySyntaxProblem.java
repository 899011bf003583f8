// Written from bridge/protocol by `make generate`.
import java.util.Map;

/** The place of a syntax error in a statement. */
class IcebergPySyntaxProblem {
  private final Map fields;
  IcebergPySyntaxProblem(Map fields) { this.fields = fields; }
  String near() { return (String) fields.get("near"); }
  String expectation() { return (String) fields.get("expectation"); }
  long line() { return ((Number) fields.get("line")).longValue(); }
  long position() { return ((Number) fields.get("position")).longValue(); }
}
