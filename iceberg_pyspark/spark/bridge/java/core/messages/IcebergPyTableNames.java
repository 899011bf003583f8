// Written from bridge/protocol by `make generate`.
import java.util.List;
import java.util.Map;

/** Table names in one namespace. */
class IcebergPyTableNames {
  private final Map fields;
  IcebergPyTableNames(Map fields) { this.fields = fields; }
  List names() { return (List) fields.get("names"); }
}
