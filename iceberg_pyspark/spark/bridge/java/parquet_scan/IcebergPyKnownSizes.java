import java.util.HashSet;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/** Splits of files, with the sizes of manifests where a store would be asked for them. */
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

  /** Return a split of a file of `size` bytes. */
  static PartitionedFile split(
      InternalRow constants, Path file, long start, long length, String[] hosts, long size) {
    scala.collection.immutable.Map none = scala.collection.immutable.Map$.MODULE$.empty();
    if (IcebergPySizedFiles.accepts(file.toUri().getScheme()))
      return new IcebergPySizedFile(constants, file, size, start, length, hosts, none);
    return new PartitionedFile(
        constants, SparkPath.fromPath(file), start, length, hosts, 0L, size, none);
  }
}
