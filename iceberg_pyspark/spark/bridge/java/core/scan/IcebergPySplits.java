import java.util.Map;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The sizes by which files are split and packed into tasks, from a query, its session or the table,
 * by Iceberg's names; all other settings are Spark's own.
 */
class IcebergPySplits {
  private static final String TARGET_SIZE = "read.split.target-size";
  private static final String TABLES_OPEN_COST = "read.split.open-file-cost";
  private static final String TABLES_ADAPTIVE = "read.split.adaptive-size.enabled";
  private static final long DEFAULT_SIZE = 128L << 20;
  /** The minimum size of splits that are made smaller for more parallelism. */
  private static final long MIN_ADAPTIVE_SIZE = 16L << 20;
  /** A user may configure one byte, but nearly all such splits would have no row group. */
  private static final long MIN_SPLIT_SIZE = 4096;
  /** The driver holds all splits in memory. */
  private static final long MAX_SPLITS = 100000;

  private final CaseInsensitiveStringMap options;
  private final Map properties;
  private boolean whole;
  /** `properties` are the table's properties. */
  IcebergPySplits(CaseInsensitiveStringMap options, Map properties) {
    this.options = options;
    this.properties = properties;
  }

  /** Split no file: Spark relies on sorted tasks, also after runtime filters. */
  void keepWhole() { whole = true; }
  boolean isWhole() { return whole; }

  /** Return the maximum bytes of a split, if a task reads `most` bytes. */
  static long splitSize(long most, long[] sizes) {
    return Math.max(most, Math.max(MIN_SPLIT_SIZE, (sum(sizes) + MAX_SPLITS - 1) / MAX_SPLITS));
  }
  private static long sum(long[] sizes) {
    long total = 0;
    for (int i = 0; i < sizes.length; i++) total += sizes[i];
    return total;
  }

  /** Return the maximum bytes that a task reads; `sizes` are the sizes of the files. */
  long maxSplitBytes(org.apache.spark.sql.classic.SparkSession spark, long[] sizes) {
    SQLConf conf = spark.sessionState().conf();
    String value = options.get(IcebergPyReadOptions.SPLIT_SIZE);
    if (value != null)
      return IcebergPyReadOptions.number("option " + IcebergPyReadOptions.SPLIT_SIZE, value, 1);
    value = conf.getConfString(IcebergPyReadOptions.SESSION_SPLIT_SIZE, null);
    if (value != null)
      return IcebergPyReadOptions.number(IcebergPyReadOptions.SESSION_SPLIT_SIZE, value, 1);
    boolean isFixed = !isAdaptive(conf);
    if (!isFixed && !properties.containsKey(TARGET_SIZE)) return sparkDefault(spark, sizes);
    long size = properties.containsKey(TARGET_SIZE)
        ? IcebergPyReadOptions.number(TARGET_SIZE, (String) properties.get(TARGET_SIZE), 1)
        : DEFAULT_SIZE;
    if (isFixed) return size;
    // a split for each core, as in Iceberg's own connector
    long total = sum(sizes);
    int cores = Math.max(spark.sparkContext().defaultParallelism(), conf.numShufflePartitions());
    long tasks = IcebergPyReadOptions.number(IcebergPyReadOptions.PARALLELISM,
        conf.getConfString(IcebergPyReadOptions.PARALLELISM, String.valueOf(cores)), 1);
    return (total + size - 1) / size < tasks
        ? Math.max(total / tasks, Math.min(MIN_ADAPTIVE_SIZE, size))
        : size;
  }

  /**
   * Return Spark's own split size, or a smaller one with which each core has equally many tasks: 5
   * tasks take 2 cores as long as 6 tasks of that size.
   */
  private long sparkDefault(org.apache.spark.sql.classic.SparkSession spark, long[] sizes) {
    SQLConf conf = spark.sessionState().conf();
    long cost = openCost(conf), bytes = sum(sizes), total = bytes + sizes.length * cost;
    scala.Option least = conf.filesMinPartitionNum();
    int tasks =
        least.isDefined() ? ((Integer) least.get()).intValue() : spark.leafNodeDefaultParallelism();
    long most = Math.min(conf.filesMaxPartitionBytes(), Math.max(cost, total / tasks));
    if (total / tasks <= most) return most;
    double rounds = Math.ceil((double) total / most / tasks);
    // Spark closes a task before the file that exceeds the size, and adds the cost of a file later
    double even = total / rounds / tasks + ((double) bytes / sizes.length - cost) / 2;
    return Math.min(most, Math.max(cost, (long) even));
  }

  private boolean isAdaptive(SQLConf conf) {
    String value = conf.getConfString(IcebergPyReadOptions.ADAPTIVE, null);
    if (value != null) return IcebergPyReadOptions.flag(IcebergPyReadOptions.ADAPTIVE, value);
    // in a table property, any value except true means false, as in Java
    value = (String) properties.get(TABLES_ADAPTIVE);
    return value == null || value.equalsIgnoreCase("true");
  }

  /** Return the minimum bytes that a file counts for. */
  long openCost(SQLConf conf) {
    String value = options.get(IcebergPyReadOptions.OPEN_COST);
    if (value != null)
      return IcebergPyReadOptions.number("option " + IcebergPyReadOptions.OPEN_COST, value, 0);
    return properties.containsKey(TABLES_OPEN_COST)
        ? IcebergPyReadOptions.number(
              TABLES_OPEN_COST, (String) properties.get(TABLES_OPEN_COST), 0)
        : conf.filesOpenCostInBytes();
  }

  /**
   * Return whether tasks should run on the hosts of the files; `scheme` is that of the locations.
   */
  boolean isLocal(SQLConf conf, String scheme) {
    Boolean value = IcebergPyReadOptions.flag(
        options, IcebergPyReadOptions.LOCALITY, conf, IcebergPyReadOptions.SESSION_LOCALITY);
    return value == null ? "hdfs".equals(scheme) : value.booleanValue();
  }
}
