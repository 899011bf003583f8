// Written from bridge/protocol by `make protocol`.
import java.util.List;
import java.util.Map;

/** An Iceberg statement that was read; without a table, Spark parses the text. */
class IcebergPyReadStatement {
  private final Map fields;
  IcebergPyReadStatement(Map fields) { this.fields = fields; }
  List table() { return (List) fields.get("table"); }
  String quoted() { return (String) fields.get("quoted"); }
  String property() { return (String) fields.get("property"); }
  String clause() { return (String) fields.get("clause"); }
  IcebergPySyntaxProblem problem() {
    return fields.get("problem") == null ? null
                                         : new IcebergPySyntaxProblem((Map) fields.get("problem"));
  }
}
