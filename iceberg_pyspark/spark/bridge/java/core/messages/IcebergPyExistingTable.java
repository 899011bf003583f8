// Written from bridge/protocol by `make generate`.
import java.util.List;
import java.util.Map;

/** The existing table; without a name, no such table exists. */
class IcebergPyExistingTable {
  private final Map fields;
  IcebergPyExistingTable(Map fields) { this.fields = fields; }
  List namespace() { return (List) fields.get("namespace"); }
  String name() { return (String) fields.get("name"); }
}
