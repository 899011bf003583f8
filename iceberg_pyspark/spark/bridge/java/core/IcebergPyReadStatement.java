// Written from bridge/protocol by `make protocol`.
import java.util.List;
import java.util.Map;

/** Iceberg's statement in a text; without a table it is Spark's to parse. */
class IcebergPyReadStatement {
  private final Map said;
  IcebergPyReadStatement(Map said) { this.said = said; }
  List table() { return (List) said.get("table"); }
  String quoted() { return (String) said.get("quoted"); }
  String property() { return (String) said.get("property"); }
  String clause() { return (String) said.get("clause"); }
  IcebergPySyntaxProblem problem() {
    return said.get("problem") == null ? null
                                       : new IcebergPySyntaxProblem((Map) said.get("problem"));
  }
}
