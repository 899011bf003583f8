/**
 * What Python calls a session. Catalogs that the session has opened have it too: what Python keeps
 * for them is needed until nothing here has it any more.
 */
class IcebergPyHandle {
  final String text;
  /** Whether the session has Iceberg; null as long as nobody has said so. */
  volatile Boolean installed = null;
  IcebergPyHandle(String text) { this.text = text; }
}
