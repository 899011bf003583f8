/**
 * The name by which Python knows a session. The catalogs of the session also refer to this object,
 * because Python keeps data for them until this object is unreachable.
 */
class IcebergPyHandle {
  final String text;
  /** Whether Iceberg was installed in the session (true) or removed (false); null: neither. */
  volatile Boolean installed = null;
  IcebergPyHandle(String text) { this.text = text; }
}
