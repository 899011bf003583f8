// Written from bridge/protocol by `make protocol`.
import java.util.Map;

/** The current credentials for a store in S3. */
class IcebergPyRenewedCredentials {
  private final Map fields;
  IcebergPyRenewedCredentials(Map fields) { this.fields = fields; }
  String accessKeyId() { return (String) fields.get("access_key_id"); }
  String secretAccessKey() { return (String) fields.get("secret_access_key"); }
  String sessionToken() { return (String) fields.get("session_token"); }
  Number expiresAtMs() { return (Number) fields.get("expires_at_ms"); }
}
