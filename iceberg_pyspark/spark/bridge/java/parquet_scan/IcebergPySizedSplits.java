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
  private static final boolean[] PLAIN = new boolean[128];
  static {
    String plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-=:@";
    for (int i = 0; i < plain.length(); i++) PLAIN[plain.charAt(i)] = true;
  }

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

  /** Return the scheme of a location, or null if it has none. */
  static String schemeOf(String location) {
    int colon = location.indexOf(':'), slash = location.indexOf('/');
    return colon < 0 || slash >= 0 && slash < colon ? null : location.substring(0, colon);
  }
  /**
   * Return the path of a file. Hadoop's path knows which characters must be escaped, but takes most
   * of the time of a plan: a location without any such character is a path already.
   */
  static SparkPath pathOf(String location) {
    return isPlain(location) ? SparkPath.fromUrlString(location)
                             : SparkPath.fromPath(new Path(location));
  }
  /** Return whether neither Hadoop nor a URI changes any character of a location. */
  private static boolean isPlain(String location) {
    String scheme = schemeOf(location);
    int start = scheme == null ? 0 : scheme.length() + 1;
    if (scheme != null && location.startsWith("//", start))
      start += 2;
    else if (!location.startsWith("/", start))
      return false;
    for (int i = start; i < location.length(); i++) {
      char c = location.charAt(i);
      if (c < PLAIN.length && PLAIN[c]) continue;
      boolean isInName = c == '.' && i > start && location.charAt(i - 1) != '/';
      boolean isEndOfName = c == '/' && i + 1 < location.length() && location.charAt(i + 1) != '/';
      if (!isInName && !isEndOfName) return false;
    }
    return location.indexOf('/', start) >= 0;
  }

  /** Return a split of a file of `size` bytes; `key` is null if the file is not encrypted. */
  static PartitionedFile split(InternalRow constants, SparkPath file, long start, long length,
      String[] hosts, long size, byte[][] key) {
    if (key != null)
      return new IcebergPyEncryptedFile(constants, file, start, length, hosts, size, key);
    scala.collection.immutable.Map none = scala.collection.immutable.Map$.MODULE$.empty();
    if (IcebergPySizedFiles.accepts(schemeOf(file.urlEncoded())))
      return new IcebergPySizedFile(constants, file, size, start, length, hosts, none);
    return new PartitionedFile(constants, file, start, length, hosts, 0L, size, none);
  }
}
