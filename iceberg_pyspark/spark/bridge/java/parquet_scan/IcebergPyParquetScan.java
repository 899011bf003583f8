import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** A scan of Parquet files by Spark's reader; filters that become known at run time skip files. */
public class IcebergPyParquetScan
    implements Scan, SupportsRuntimeV2Filtering, SupportsReportStatistics {
  private static final int MAX_VALUES = 10000;
  /** Row counts of manifests may be wrong, and batches of few rows are slow. */
  private static final int SMALLEST_BATCH = 128;
  /**
   * Parquet has other threads read several ranges of a file at once. This spares requests of a
   * store; of a local file it takes more than the reading, and Spark does not count the bytes.
   */
  private static final String READ_TOGETHER = "parquet.hadoop.vectored.io.enabled";
  final IcebergPyParquetFiles table;
  final org.apache.spark.sql.sources.Filter[] filters;
  final IcebergPySplits splits;
  private final Map scanDefinition, statistics;
  private PartitionReaderFactory readers;
  private volatile IcebergPyParquetBatch batch;
  IcebergPyParquetScan(IcebergPyParquetFiles table, org.apache.spark.sql.sources.Filter[] filters,
      Map scanDefinition, IcebergPySplits splits, Map statistics) {
    this.splits = splits;
    this.statistics = statistics;
    this.table = table;
    this.filters = filters;
    this.scanDefinition = scanDefinition;
    this.batch = new IcebergPyParquetBatch(this, table.files);
  }
  public StructType readSchema() { return table.schema(); }
  public String description() {
    return getClass().getName() + "(" + table.files.paths.length + " files)"
        + ", PushedFilters: " + Arrays.toString(filters)
        + ", ReadSchema: " + table.columns.catalogString();
  }
  /** A batch never changes: after runtime filters, Spark takes the batch again. */
  public Batch toBatch() { return batch; }
  /**
   * Return one mode for all files; otherwise, Spark would split and pack the files to get the mode
   * of each task.
   */
  public Scan.ColumnarSupportMode columnarSupportMode() {
    return readers().supportColumnarReads(null) ? Scan.ColumnarSupportMode.SUPPORTED
                                                : Scan.ColumnarSupportMode.UNSUPPORTED;
  }

  synchronized PartitionReaderFactory readers() {
    if (readers == null) readers = newReaders();
    return readers;
  }
  /** Create the readers of Spark's own Parquet scan, which itself is not in the plan. */
  PartitionReaderFactory newReaders() {
    scala.collection.immutable.Seq none = IcebergPyBridge.seq(new ArrayList());
    Batch sparks = (Batch) IcebergPyFileInternals.parquetScan(
        new Object[] {IcebergPyReaderSettings.session(table.session), settingsOfTasks(), null,
            table.columns, table.columns, table.files.constantSchema, filters,
            IcebergPyReaderSettings.ofParquet(), scala.Option.empty(), none, none});
    PartitionReaderFactory readers = sparks.createReaderFactory();
    SQLConf conf = IcebergPyFileInternals.settingsOf(readers);
    if (conf == null || conf.parquetVectorizedReaderBatchSize() <= rowsOfBatch()) return readers;
    SQLConf settings = conf.clone();
    settings.setConfString(
        "spark.sql.parquet.columnarReaderBatchSize", String.valueOf(rowsOfBatch()));
    return (PartitionReaderFactory) IcebergPyFileInternals.withSettings(readers, settings);
  }
  /**
   * Return the most rows that a batch needs. Spark's reader allocates the memory of a whole batch
   * for each file, which took an eighth of the time of files with 20 rows.
   */
  long rowsOfBatch() {
    return table.rowsOfLargestFile < 1 ? Long.MAX_VALUE
                                       : Math.max(SMALLEST_BATCH, table.rowsOfLargestFile);
  }
  /** Return the lengths of the files for splits. */
  long[] lengths(IcebergPyPlannedFiles files) { return files.sizes; }
  /** Return the session's Hadoop configuration with the options of these files. */
  Configuration hadoop() { return IcebergPyConfiguration.of(table.session, table.options); }
  /** Return the configuration by which tasks open these files. */
  Configuration settingsOfTasks() {
    Configuration conf = hadoop();
    IcebergPySizedSplits.prepare(table.session, conf, table.files.paths);
    if (table.files.fileKeys != null) IcebergPyTaskClasses.prepare(table.session, conf);
    if (conf.get(READ_TOGETHER) == null && isLocal(table.files.paths))
      conf.setBoolean(READ_TOGETHER, false);
    return conf;
  }
  private static boolean isLocal(String[] paths) {
    for (int i = 0; i < paths.length; i++)
      if (!paths[i].startsWith("file:") && !paths[i].startsWith("/")) return false;
    return true;
  }
  public Statistics estimateStatistics() {
    return new IcebergPyStatistics(
        IcebergPySizes.estimate(table.rows, table.schema()), table.rows, statistics);
  }

  public CustomMetric[] supportedCustomMetrics() {
    return (CustomMetric[]) metrics().toArray(new CustomMetric[0]);
  }
  public CustomTaskMetric[] reportDriverMetrics() {
    return (CustomTaskMetric[]) metrics().toArray(new CustomTaskMetric[0]);
  }
  /** Names and texts are the same as in Iceberg's own scans, if these have the metric. */
  private List metrics() {
    IcebergPyPlannedFiles now = batch.files;
    List out = new ArrayList();
    long bytes = 0;
    for (int i = 0; i < now.sizes.length; i++) bytes += now.sizes[i];
    out.add(
        new IcebergPyMetric("resultDataFiles", "number of result data files", now.paths.length));
    out.add(new IcebergPyMetric("totalDataFileSize", "total data file size (bytes)", bytes));
    out.add(new IcebergPyMetric("runtimeSkippedDataFiles",
        "number of data files skipped by run-time filters",
        table.files.paths.length - now.paths.length));
    String[][] texts = {{"skippedDataFiles", "number of skipped data files"},
        {"scannedDataManifests", "number of scanned manifests"},
        {"skippedDataManifests", "number of skipped manifests"},
        {"indexedDeleteFiles", "number of indexed delete files"},
        {"totalPlanningDuration", "total planning duration (ms)"}};
    for (int i = 0; i < texts.length; i++)
      if (table.planMetrics.containsKey(texts[i][0]))
        out.add(new IcebergPyMetric(
            texts[i][0], texts[i][1], ((Number) table.planMetrics.get(texts[i][0])).longValue()));
    return out;
  }

  public NamedReference[] filterAttributes() {
    List out = new ArrayList();
    String[] constants = table.files.constantSchema.fieldNames();
    for (int i = 0; i < constants.length; i++)
      out.add(Expressions.column(IcebergPyBridge.quote(constants[i])));
    String[] columns = table.columns.fieldNames();
    for (int i = 0; i < columns.length; i++)
      if (table.filterColumns.containsKey(columns[i]))
        out.add(Expressions.column(IcebergPyBridge.quote(columns[i])));
    return (NamedReference[]) out.toArray(new NamedReference[0]);
  }

  /** Filter all planned files again, because a query may run several times. */
  public void filter(Predicate[] predicates) {
    IcebergPyPlannedFiles files = table.files;
    boolean[] keeps = new boolean[files.paths.length];
    Arrays.fill(keeps, true);
    List conditions = new ArrayList();
    for (int p = 0; p < predicates.length; p++) {
      List values = valuesOf(predicates[p]);
      if (values == null) continue;
      String column = ((NamedReference) predicates[p].children()[0]).fieldNames()[0];
      scala.Option constant = files.constantSchema.getFieldIndex(column);
      if (constant.isDefined())
        keepByConstant(files, ((Integer) constant.get()).intValue(), values, keeps);
      else if (table.filterColumns.containsKey(column))
        conditions.add(describe((String) table.filterColumns.get(column), values));
    }
    if (!conditions.isEmpty() && any(keeps)) keepByPlan(files, conditions, keeps);
    batch = new IcebergPyParquetBatch(this, files.only(keeps));
  }
  /** Return the values to which a filter restricts one column; null for any other filter. */
  private static List valuesOf(Predicate predicate) {
    List all = new ArrayList(Arrays.asList(predicate.children()));
    if (!predicate.name().equals("IN") || !(all.get(0) instanceof NamedReference)) return null;
    if (((NamedReference) all.remove(0)).fieldNames().length != 1) return null;
    List values = new ArrayList();
    for (int i = 0; i < all.size(); i++) {
      if (!(all.get(i) instanceof LiteralValue)) return null;
      // null equals nothing
      if (((LiteralValue) all.get(i)).value() != null) values.add(all.get(i));
    }
    return values;
  }
  private static boolean any(boolean[] keeps) {
    for (int i = 0; i < keeps.length; i++)
      if (keeps[i]) return true;
    return false;
  }

  private static void keepByConstant(
      IcebergPyPlannedFiles files, int constant, List literals, boolean[] keeps) {
    DataType type = files.constantSchema.fields()[constant].dataType();
    Set values = new HashSet();
    for (int i = 0; i < literals.size(); i++) {
      if (!((LiteralValue) literals.get(i)).dataType().equals(type)) return;
      values.add(((LiteralValue) literals.get(i)).value());
    }
    for (int i = 0; i < keeps.length; i++) {
      InternalRow constants = files.constants[i];
      keeps[i] &= !constants.isNullAt(constant) && values.contains(constants.get(constant, type));
    }
  }

  /** Describe a filter as the rule describes conditions; very many values become their bounds. */
  private static Map describe(String name, List literals) {
    Map column = IcebergPyRequests.columnPath(IcebergPyBridge.list(new Object[] {name}));
    List args = new ArrayList();
    args.add(column);
    if (literals.size() <= MAX_VALUES) {
      for (int i = 0; i < literals.size(); i++) args.add(describe(literals.get(i)));
      return IcebergPyFilters.node("in", args.toArray());
    }
    Object least = literals.get(0), most = literals.get(0);
    for (int i = 1; i < literals.size(); i++) {
      if (compare(literals.get(i), least) < 0) least = literals.get(i);
      if (compare(literals.get(i), most) > 0) most = literals.get(i);
    }
    return IcebergPyFilters.node("and",
        new Object[] {
            IcebergPyFilters.node("GreaterThanOrEqual", new Object[] {column, describe(least)}),
            IcebergPyFilters.node("LessThanOrEqual", new Object[] {column, describe(most)})});
  }
  private static Map describe(Object literal) {
    return IcebergPyFilters.literal(
        ((LiteralValue) literal).value(), ((LiteralValue) literal).dataType());
  }
  private static int compare(Object a, Object b) {
    return ((Comparable) ((LiteralValue) a).value()).compareTo(((LiteralValue) b).value());
  }

  /** Let Python plan again, with the definition of the scan and these conditions. */
  private void keepByPlan(IcebergPyPlannedFiles files, List conditions, boolean[] keeps) {
    List locations = IcebergPyRequests.scanRuntimeFilter(scanDefinition, conditions).locations();
    if (locations == null) return;
    Set remaining = new HashSet();
    for (int i = 0; i < locations.size(); i++) remaining.add(withoutScheme(locations.get(i)));
    for (int i = 0; i < keeps.length; i++)
      keeps[i] &= remaining.contains(withoutScheme(files.paths[i]));
  }
  /** The scheme of a planned file depends on its store's credentials, which may have changed. */
  private static String withoutScheme(Object location) {
    String text = (String) location;
    int separator = text.indexOf("://");
    return separator < 0 ? text : text.substring(separator + 3);
  }

  public boolean equals(Object other) {
    return other instanceof IcebergPyParquetScan
        && ((IcebergPyParquetScan) other).table.equals(table)
        && Arrays.equals(((IcebergPyParquetScan) other).filters, filters);
  }
  public int hashCode() { return table.hashCode(); }
}
