// Written from bridge/protocol by `make generate`.
import java.util.Map;

/** A parameter of a procedure. */
class IcebergPyProcedureArgument {
  private final Map fields;
  IcebergPyProcedureArgument(Map fields) { this.fields = fields; }
  String name() { return (String) fields.get("name"); }
  String type() { return (String) fields.get("type"); }
  boolean isRequired() { return ((Boolean) fields.get("is_required")).booleanValue(); }
}
