/**
 * Has the JVM load the classes that read tables of Arrow's, beside whatever else a session begins
 * with: the first table would wait for them for some 0.4 seconds.
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
      // whoever reads a table that matters meets it again, and says so
    }
  }
  static void load(byte[] table) {
    Thread thread = new Thread(new IcebergPyArrowClasses(table), "iceberg-py-arrow-classes");
    thread.setDaemon(true);
    thread.start();
  }
}
