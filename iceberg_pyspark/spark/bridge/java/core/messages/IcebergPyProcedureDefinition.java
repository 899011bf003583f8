// Written from bridge/protocol by `make generate`.
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The signature of a procedure, for Spark. */
class IcebergPyProcedureDefinition {
  private final Map fields;
  IcebergPyProcedureDefinition(Map fields) { this.fields = fields; }
  String name() { return (String) fields.get("name"); }
  String description() { return (String) fields.get("description"); }
  List parameters() {
    List values = (List) fields.get("parameters"), items = new ArrayList();
    for (int i = 0; i < values.size(); i++)
      items.add(new IcebergPyProcedureArgument((Map) values.get(i)));
    return items;
  }
  String schema() { return (String) fields.get("schema"); }
}
