// Written from bridge/protocol by `make generate`.
import java.util.List;
import java.util.Map;

/** The response to any request that fails: Java raises it. */
class IcebergPyFailure {
  private final Map fields;
  IcebergPyFailure(Map fields) { this.fields = fields; }
  String error() { return (String) fields.get("error"); }
  String message() { return (String) fields.get("message"); }
  List namespace() { return (List) fields.get("namespace"); }
  String name() { return (String) fields.get("name"); }
}
