// Written from bridge/protocol by `make generate`.
import java.util.List;
import java.util.Map;

/** The columns whose bounds differ from file to file. */
class IcebergPyFilterColumns {
  private final Map fields;
  IcebergPyFilterColumns(Map fields) { this.fields = fields; }
  List columns() { return (List) fields.get("columns"); }
}
