import org.apache.spark.sql.connector.catalog.CatalogManager;

/**
 * The threads in which Spark's Thrift server opens the session of a JDBC client. Hive gives them a
 * class loader that lacks the classes of all jars of the session. The server runs USE there, and
 * runs no other statement.
 */
class IcebergPyThriftThreads {
  /** Open the catalogs of a statement, if the thread is such a thread. */
  static void openCatalogs(String statement) {
    Thread thread = Thread.currentThread();
    ClassLoader loader = thread.getContextClassLoader();
    if (loader == null || hasOurs(loader)) return;
    CatalogManager catalogs = IcebergPySessions.active().sessionState().catalogManager();
    // not for good: Hive closes what it finds here, and the parents of that
    thread.setContextClassLoader(iceberg_pyspark.class.getClassLoader());
    try {
      catalogs.currentCatalog();
      scala.collection.Iterator settings = IcebergPySessions.active().conf().getAll().iterator();
      while (settings.hasNext()) {
        scala.Tuple2 setting = (scala.Tuple2) settings.next();
        String name = ((String) setting._1()).replaceFirst("^spark[.]sql[.]catalog[.]", "");
        if (setting._2().equals(iceberg_pyspark.class.getName()) && statement.contains(name))
          catalogs.catalog(name);
      }
    } finally {
      thread.setContextClassLoader(loader);
    }
  }
  private static boolean hasOurs(ClassLoader loader) {
    try {
      loader.loadClass(iceberg_pyspark.class.getName());
      return true;
    } catch (ClassNotFoundException e) {
      return false;
    }
  }
}
