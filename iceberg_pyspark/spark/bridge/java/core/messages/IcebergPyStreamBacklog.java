// Written from bridge/protocol by `make generate`.
import java.util.Map;

/** What a stream has not read, or None if that is not known. */
class IcebergPyStreamBacklog {
  private final Map fields;
  IcebergPyStreamBacklog(Map fields) { this.fields = fields; }
  Number files() { return (Number) fields.get("files"); }
  Number rows() { return (Number) fields.get("rows"); }
  Number size() { return (Number) fields.get("size"); }
}
