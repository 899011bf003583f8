// Written from bridge/protocol by `make generate`.
import java.util.List;
import java.util.Map;

/** Procedure names without their namespace. */
class IcebergPyProcedureNames {
  private final Map fields;
  IcebergPyProcedureNames(Map fields) { this.fields = fields; }
  List names() { return (List) fields.get("names"); }
}
