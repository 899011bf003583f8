// Written from bridge/protocol by `make protocol`.
import java.util.Map;

/** Hidden columns, as a schema of Spark's. */
class IcebergPyHiddenColumns {
  private final Map said;
  IcebergPyHiddenColumns(Map said) { this.said = said; }
  String columns() { return (String) said.get("columns"); }
}
