import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A placeholder in the optimized plan, which `IcebergPyRule` replaces by Python's plan. */
public class IcebergPyScan
    implements SupportsRuntimeV2Filtering, SupportsReportStatistics, SupportsReportPartitioning {
  private static final String SHUFFLE_ENABLED = "spark.sql.sources.v2.bucketing.shuffle.enabled";
  final IcebergPyTable table;
  final CaseInsensitiveStringMap options;
  private final StructType schema;
  /** The locations of the only data files to read; null for all. */
  final List files;
  private NamedReference[] filterAttributes;
  IcebergPyScan(
      IcebergPyTable table, CaseInsensitiveStringMap options, StructType schema, List files) {
    this.table = table;
    this.options = options;
    this.schema = schema;
    this.files = files;
  }
  IcebergPyScan ofFiles(List files) { return new IcebergPyScan(table, options, schema, files); }
  public StructType readSchema() { return schema; }
  public String description() { return "iceberg-py " + table.name(); }
  public Statistics estimateStatistics() {
    return new IcebergPyStatistics(table.sizeInBytes(), table.rows(), columnStatistics());
  }
  /** Return statistics only if the session uses them, because Python reads manifests for them. */
  Map columnStatistics() {
    org.apache.spark.sql.internal.SQLConf conf = IcebergPySessions.active().sessionState().conf();
    boolean usesStatistics = conf.cboEnabled()
        && IcebergPyReadOptions.flag(IcebergPyReadOptions.COLUMN_STATISTICS,
            conf.getConfString(IcebergPyReadOptions.COLUMN_STATISTICS, "true"));
    return usesStatistics ? table.columnStatistics() : Collections.emptyMap();
  }
  /**
   * Return the columns that are read and whose values allow files to be skipped. Spark calls this
   * for joins only, so only joins have bounds compared.
   */
  public synchronized NamedReference[] filterAttributes() {
    if (filterAttributes != null) return filterAttributes;
    List skippable = new ArrayList(table.filterColumns()),
         compared = new ArrayList(table.comparedColumns()), out = new ArrayList();
    skippable.retainAll(Arrays.asList(schema.fieldNames()));
    compared.retainAll(Arrays.asList(schema.fieldNames()));
    if (!compared.isEmpty())
      skippable.addAll(IcebergPyRequests
              .scanFilterColumns(IcebergPyRule.scannedTable(table.handle, null), compared)
              .columns());
    for (int i = 0; i < skippable.size(); i++)
      out.add(Expressions.column(IcebergPyBridge.quote((String) skippable.get(i))));
    filterAttributes = (NamedReference[]) out.toArray(new NamedReference[0]);
    return filterAttributes;
  }
  /** Only joins of grouped tables gain from a task for each group, so groups need an option. */
  public Partitioning outputPartitioning() {
    Transform[] keys = table.grouping();
    if (keys.length == 0 || !isSet(IcebergPyReadOptions.PRESERVE_GROUPING)
        || !isKnownToExecutors(keys))
      return new UnknownPartitioning(0);
    return new KeyGroupedPartitioning(keys, 0);
  }
  /** With its setting, Spark shuffles rows by key functions, which executors do not have. */
  private static boolean isKnownToExecutors(Transform[] keys) {
    for (int i = 0; i < keys.length; i++)
      if (!keys[i].name().equals("identity") && shufflesToGroups()) return false;
    return true;
  }
  /** Return whether Spark may shuffle one side of a join into the groups of the other side. */
  static boolean shufflesToGroups() {
    return IcebergPySessions.active()
        .sessionState()
        .conf()
        .getConfString(SHUFFLE_ENABLED, "false")
        .equalsIgnoreCase("true");
  }
  /** Return whether to tell Spark the order of rows in files, which Spark then trusts. */
  boolean preservesOrdering() { return isSet(IcebergPyReadOptions.PRESERVE_ORDERING); }
  private boolean isSet(String name) {
    Boolean flag = IcebergPyReadOptions.flag(options, name,
        IcebergPySessions.active().sessionState().conf(), IcebergPyReadOptions.PLANNING + name);
    return flag != null && flag.booleanValue();
  }
  public MicroBatchStream toMicroBatchStream(String checkpoint) {
    return new IcebergPyStream(table.name(), table.handle, options.asCaseSensitiveMap(),
        new IcebergPySplits(options, table.properties()), checkpoint);
  }
  /** Spark does not call this method, but filters the scan that replaces this placeholder. */
  public void filter(Predicate[] predicates) {}
  public boolean equals(Object other) {
    return other instanceof IcebergPyScan && ((IcebergPyScan) other).table.equals(table)
        && ((IcebergPyScan) other).schema.equals(schema)
        && ((IcebergPyScan) other).options.equals(options)
        && java.util.Objects.equals(((IcebergPyScan) other).files, files);
  }
  public int hashCode() { return table.hashCode(); }
}
