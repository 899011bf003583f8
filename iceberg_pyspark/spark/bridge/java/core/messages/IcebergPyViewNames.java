// Written from bridge/protocol by `make generate`.
import java.util.List;
import java.util.Map;

/** View names without their namespace. */
class IcebergPyViewNames {
  private final Map fields;
  IcebergPyViewNames(Map fields) { this.fields = fields; }
  List names() { return (List) fields.get("names"); }
}
