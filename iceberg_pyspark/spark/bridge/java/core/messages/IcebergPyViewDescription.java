// Written from bridge/protocol by `make generate`.
import java.util.List;
import java.util.Map;

/** The rows of a statement that describes a view. */
class IcebergPyViewDescription {
  private final Map fields;
  IcebergPyViewDescription(Map fields) { this.fields = fields; }
  boolean exists() { return ((Boolean) fields.get("exists")).booleanValue(); }
  List rows() { return (List) fields.get("rows"); }
}
