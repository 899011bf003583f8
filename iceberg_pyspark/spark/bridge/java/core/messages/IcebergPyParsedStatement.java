// Written from bridge/protocol by `make generate`.
import java.util.List;
import java.util.Map;

/** A parsed Iceberg statement; without a table, Spark parses the text. */
class IcebergPyParsedStatement {
  private final Map fields;
  IcebergPyParsedStatement(Map fields) { this.fields = fields; }
  List table() { return (List) fields.get("table"); }
  String quotedTable() { return (String) fields.get("quoted_table"); }
  String property() { return (String) fields.get("property"); }
  String clause() { return (String) fields.get("clause"); }
  IcebergPySyntaxProblem problem() {
    return fields.get("problem") == null ? null
                                         : new IcebergPySyntaxProblem((Map) fields.get("problem"));
  }
}
