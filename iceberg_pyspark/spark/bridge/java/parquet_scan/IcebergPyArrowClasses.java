/**
 * Loads the classes that read Arrow tables, while the session starts: otherwise, the first table
 * would wait for them for some 0.4 seconds.
 */
class IcebergPyArrowClasses implements Runnable {
  private final byte[] table;
  IcebergPyArrowClasses(byte[] table) { this.table = table; }
  public void run() {
    try {
      IcebergPyArrowTable read = IcebergPyArrowTable.of(table);
      read.rows(java.util.Arrays.asList(read.schema.fieldNames()));
      read.close();
    } catch (Throwable e) {
      // the reader of a real table gets the same error, and reports it
    }
  }
  static void load(byte[] table) {
    Thread thread = new Thread(new IcebergPyArrowClasses(table), "iceberg-py-arrow-classes");
    thread.setDaemon(true);
    thread.start();
  }
}
