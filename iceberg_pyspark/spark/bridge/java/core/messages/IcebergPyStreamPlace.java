// Written from bridge/protocol by `make generate`.
import java.util.Map;

/** An offset, or None if there is nothing to read. */
class IcebergPyStreamPlace {
  private final Map fields;
  IcebergPyStreamPlace(Map fields) { this.fields = fields; }
  String offset() { return (String) fields.get("offset"); }
}
