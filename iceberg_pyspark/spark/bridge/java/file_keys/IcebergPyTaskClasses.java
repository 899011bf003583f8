import org.apache.hadoop.conf.Configuration;

/**
 * The classes that the thread of a task knows. A task in the driver's JVM may get the driver's own
 * configuration, but has classes of its own, with the keys.
 */
class IcebergPyTaskClasses extends ClassLoader {
  private IcebergPyTaskClasses(ClassLoader parent) { super(parent); }

  protected Class loadClass(String name, boolean resolve) throws ClassNotFoundException {
    ClassLoader own = Thread.currentThread().getContextClassLoader();
    try {
      if (own != null) return own.loadClass(name);
    } catch (ClassNotFoundException e) {
      return super.loadClass(name, resolve);
    }
    return super.loadClass(name, resolve);
  }

  /** Make tasks, and executors, find the keys of their files. */
  static void prepare(org.apache.spark.sql.classic.SparkSession session, Configuration conf) {
    conf.set("parquet.crypto.factory.class", IcebergPyFileKeys.class.getName());
    conf.setClassLoader(new IcebergPyTaskClasses(conf.getClassLoader()));
    IcebergPyExecutorJars.send(session, IcebergPyFileKeys.class);
  }
}
