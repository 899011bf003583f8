// Written from bridge/protocol by `make generate`.
import java.util.List;
import java.util.Map;

/** The result rows of a procedure. */
class IcebergPyProcedureRows {
  private final Map fields;
  IcebergPyProcedureRows(Map fields) { this.fields = fields; }
  List rows() { return (List) fields.get("rows"); }
}
