import java.util.Map;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * How files are cut and packed into tasks where a query, its session or the table says so, by
 * Iceberg's names; all else is left to Spark's own settings.
 */
class IcebergPySplits {
  private static final String TARGET_SIZE = "read.split.target-size";
  private static final String TABLES_OPEN_COST = "read.split.open-file-cost";
  private static final String TABLES_ADAPTIVE = "read.split.adaptive-size.enabled";
  private static final long DEFAULT_SIZE = 128L << 20;
  /** So small at least are the pieces of files that are cut for the sake of parallelism. */
  private static final long LEAST_ADAPTED = 16L << 20;
  /** A size of one byte may be asked for; nearly all of its pieces would have no row group. */
  private static final long LEAST_PIECE = 4096;
  /** The driver holds them in memory. */
  private static final long MOST_PIECES = 100000;

  private final CaseInsensitiveStringMap options;
  private final Map properties;
  private boolean whole;
  /** `properties` are the table's. */
  IcebergPySplits(CaseInsensitiveStringMap options, Map properties) {
    this.options = options;
    this.properties = properties;
  }

  /** No file is cut: Spark knows tasks as sorted, whatever run-time filters leave. */
  void keepWhole() { whole = true; }
  boolean isWhole() { return whole; }

  /** The most bytes of a piece of a file, where a task reads `most` bytes. */
  static long pieceBytes(long most, long[] sizes) {
    return Math.max(most, Math.max(LEAST_PIECE, (sum(sizes) + MOST_PIECES - 1) / MOST_PIECES));
  }
  private static long sum(long[] sizes) {
    long total = 0;
    for (int i = 0; i < sizes.length; i++) total += sizes[i];
    return total;
  }

  /** The most bytes that a task reads; `sizes` are those of the files. */
  long mostBytes(org.apache.spark.sql.classic.SparkSession spark, long[] sizes) {
    SQLConf conf = spark.sessionState().conf();
    String value = options.get(IcebergPyReadOptions.SPLIT_SIZE);
    if (value != null)
      return IcebergPyReadOptions.number("option " + IcebergPyReadOptions.SPLIT_SIZE, value, 1);
    value = conf.getConfString(IcebergPyReadOptions.SESSION_SPLIT_SIZE, null);
    if (value != null)
      return IcebergPyReadOptions.number(IcebergPyReadOptions.SESSION_SPLIT_SIZE, value, 1);
    boolean isFixed = !isAdaptive(conf);
    if (!isFixed && !properties.containsKey(TARGET_SIZE)) return sparks(spark, sizes);
    long size = properties.containsKey(TARGET_SIZE)
        ? IcebergPyReadOptions.number(TARGET_SIZE, (String) properties.get(TARGET_SIZE), 1)
        : DEFAULT_SIZE;
    if (isFixed) return size;
    // a piece for each core, as Iceberg's own connector cuts them
    long total = sum(sizes);
    int cores = Math.max(spark.sparkContext().defaultParallelism(), conf.numShufflePartitions());
    long tasks = IcebergPyReadOptions.number(IcebergPyReadOptions.PARALLELISM,
        conf.getConfString(IcebergPyReadOptions.PARALLELISM, String.valueOf(cores)), 1);
    return (total + size - 1) / size < tasks
        ? Math.max(total / tasks, Math.min(LEAST_ADAPTED, size))
        : size;
  }

  /** What Spark cuts files of its own by: as much as keeps all cores busy. */
  private long sparks(org.apache.spark.sql.classic.SparkSession spark, long[] sizes) {
    SQLConf conf = spark.sessionState().conf();
    long cost = openCost(conf), total = 0;
    for (int i = 0; i < sizes.length; i++) total += sizes[i] + cost;
    scala.Option least = conf.filesMinPartitionNum();
    int tasks =
        least.isDefined() ? ((Integer) least.get()).intValue() : spark.leafNodeDefaultParallelism();
    return Math.min(conf.filesMaxPartitionBytes(), Math.max(cost, total / tasks));
  }

  private boolean isAdaptive(SQLConf conf) {
    String value = conf.getConfString(IcebergPyReadOptions.ADAPTIVE, null);
    if (value != null) return IcebergPyReadOptions.flag(IcebergPyReadOptions.ADAPTIVE, value);
    // in a table, as Java reads it, all that is not true is false
    value = (String) properties.get(TABLES_ADAPTIVE);
    return value == null || value.equalsIgnoreCase("true");
  }

  /** The least bytes that a file counts for. */
  long openCost(SQLConf conf) {
    String value = options.get(IcebergPyReadOptions.OPEN_COST);
    if (value != null)
      return IcebergPyReadOptions.number("option " + IcebergPyReadOptions.OPEN_COST, value, 0);
    return properties.containsKey(TABLES_OPEN_COST)
        ? IcebergPyReadOptions.number(
              TABLES_OPEN_COST, (String) properties.get(TABLES_OPEN_COST), 0)
        : conf.filesOpenCostInBytes();
  }

  /** Whether tasks are to run where the files of a scheme lie. */
  boolean isLocal(SQLConf conf, String scheme) {
    Boolean value = IcebergPyReadOptions.flag(
        options, IcebergPyReadOptions.LOCALITY, conf, IcebergPyReadOptions.SESSION_LOCALITY);
    return value == null ? "hdfs".equals(scheme) : value.booleanValue();
  }
}
