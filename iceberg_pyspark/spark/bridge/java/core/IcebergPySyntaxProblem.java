// Written from bridge/protocol by `make protocol`.
import java.util.Map;

/** Where a statement is wrong. */
class IcebergPySyntaxProblem {
  private final Map said;
  IcebergPySyntaxProblem(Map said) { this.said = said; }
  String near() { return (String) said.get("near"); }
  String expected() { return (String) said.get("expected"); }
  long line() { return ((Number) said.get("line")).longValue(); }
  long position() { return ((Number) said.get("position")).longValue(); }
}
