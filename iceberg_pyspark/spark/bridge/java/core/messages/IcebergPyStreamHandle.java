// Written from bridge/protocol by `make generate`.
import java.util.Map;

/** The name of an open stream in further requests. */
class IcebergPyStreamHandle {
  private final Map fields;
  IcebergPyStreamHandle(Map fields) { this.fields = fields; }
  String stream() { return (String) fields.get("stream"); }
}
