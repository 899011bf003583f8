/**
 * The name of a session for Python. The catalogs of the session also refer to this object,
 * because Python keeps data for them until this object is unreachable.
 */
class IcebergPySessionHandle {
  final String text;
  /** Whether Iceberg was installed in the session (true) or removed (false); null: neither. */
  volatile Boolean installed = null;
  IcebergPySessionHandle(String text) { this.text = text; }
}
