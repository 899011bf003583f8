import java.util.HashSet;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/** Splits of files, with the sizes of manifests where a store would be queried for them. */
class IcebergPySizedSplits {
  private static final long BEYOND = 1L << 42;

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

  /**
   * Return the splits of a task, where the last split of a file has no end. A task reads the row
   * groups whose middle is in its split: if the size in a manifest were too small, nobody would
   * read the last ones. For files whose size is in their paths, the read fails instead.
   */
  static PartitionedFile[] toEndOfFile(PartitionedFile[] splits) {
    PartitionedFile[] out = new PartitionedFile[splits.length];
    for (int i = 0; i < out.length; i++) {
      PartitionedFile split = splits[i];
      boolean isLast = split.start() + split.length() == split.fileSize();
      if (isLast && split instanceof IcebergPyEncryptedFile) {
        out[i] = ((IcebergPyEncryptedFile) split).withLength(split.length() + BEYOND);
        continue;
      }
      out[i] = isLast && !(split instanceof IcebergPySizedFile)
          ? new PartitionedFile(split.partitionValues(), split.filePath(), split.start(),
                split.length() + BEYOND, split.locations(), split.modificationTime(),
                split.fileSize(), split.otherConstantMetadataColumnValues())
          : split;
    }
    return out;
  }

  /** Return a split of a file of `size` bytes; `key` is null if the file is not encrypted. */
  static PartitionedFile split(InternalRow constants, Path file, long start, long length,
      String[] hosts, long size, byte[][] key) {
    if (key != null)
      return new IcebergPyEncryptedFile(
          constants, SparkPath.fromPath(file), start, length, hosts, size, key);
    scala.collection.immutable.Map none = scala.collection.immutable.Map$.MODULE$.empty();
    if (IcebergPySizedFiles.accepts(file.toUri().getScheme()))
      return new IcebergPySizedFile(constants, file, size, start, length, hosts, none);
    return new PartitionedFile(
        constants, SparkPath.fromPath(file), start, length, hosts, 0L, size, none);
  }
}
