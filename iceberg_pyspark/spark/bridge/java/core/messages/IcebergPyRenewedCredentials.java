// Written from bridge/protocol by `make generate`.
import java.util.Map;

/** The current credentials of a store, by the names of Hadoop's options for them. */
class IcebergPyRenewedCredentials {
  private final Map fields;
  IcebergPyRenewedCredentials(Map fields) { this.fields = fields; }
  Map options() { return (Map) fields.get("options"); }
  Number expiresAtMs() { return (Number) fields.get("expires_at_ms"); }
}
