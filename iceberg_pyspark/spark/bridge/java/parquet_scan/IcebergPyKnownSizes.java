import java.util.HashSet;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * The paths by which tasks open files, with the sizes of manifests where a store would be asked.
 */
class IcebergPyKnownSizes {
  /** Make Hadoop's settings of tasks, and the executors, know the paths that `path` returns. */
  static void prepare(
      org.apache.spark.sql.classic.SparkSession session, Configuration conf, String[] locations) {
    Set schemes = new HashSet();
    for (int i = 0; i < locations.length; i++) {
      int end = locations[i].indexOf("://");
      String scheme = end < 0 ? null : locations[i].substring(0, end);
      if (!IcebergPySizedFiles.accepts(scheme) || !schemes.add(scheme)) continue;
      conf.set(IcebergPySizedFiles.option(scheme), IcebergPySizedFiles.class.getName());
    }
    if (schemes.isEmpty()) return;
    // Tasks in the driver's JVM may get this configuration itself.
    conf.setClassLoader(IcebergPySizedFiles.class.getClassLoader());
    IcebergPyExecutorJars.send(session, IcebergPySizedFiles.class);
  }

  /** Return the path by which a task opens a file. */
  static Path path(String location, long size) {
    // Hadoop's path knows which characters of a location must be escaped
    Path file = new Path(location);
    return IcebergPySizedFiles.accepts(file.toUri().getScheme())
        ? IcebergPySizedFiles.sized(file, size)
        : file;
  }
}
