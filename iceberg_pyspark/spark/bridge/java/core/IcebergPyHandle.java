/**
 * What Python calls a session. Catalogs that the session has opened have it too: what Python keeps
 * for them is needed until nothing here has it any more.
 */
class IcebergPyHandle {
  final String text;
  /** Whether Iceberg was installed in the session (true) or taken out of it; null: neither. */
  volatile Boolean installed = null;
  IcebergPyHandle(String text) { this.text = text; }
}
