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
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Stands in the optimized plan until `IcebergPyRule` puts the plan Python made in its place. */
public class IcebergPyScan
    implements SupportsRuntimeV2Filtering, SupportsReportStatistics, SupportsReportPartitioning {
  private static final String SHUFFLED = "spark.sql.sources.v2.bucketing.shuffle.enabled";
  final IcebergPyTable table;
  final CaseInsensitiveStringMap options;
  private final StructType schema;
  public IcebergPyScan(IcebergPyTable table, CaseInsensitiveStringMap options, StructType schema) {
    this.table = table;
    this.options = options;
    this.schema = schema;
  }
  public StructType readSchema() { return schema; }
  public String description() { return "iceberg-py " + table.name(); }
  public Statistics estimateStatistics() {
    return new IcebergPyStatistics(table.sizeInBytes(), table.rows(), columnStatistics());
  }
  /** Only where the session asks for what they are for: manifests are read for them. */
  Map columnStatistics() {
    org.apache.spark.sql.internal.SQLConf conf = IcebergPySessions.active().sessionState().conf();
    boolean usesStatistics = conf.cboEnabled()
        && IcebergPyReadOptions.flag(IcebergPyReadOptions.COLUMN_STATISTICS,
            conf.getConfString(IcebergPyReadOptions.COLUMN_STATISTICS, "true"));
    return usesStatistics ? table.columnStatistics() : Collections.emptyMap();
  }
  /** The columns by whose values files can be skipped, as far as they are read. */
  public NamedReference[] filterAttributes() {
    List skippable = table.filtered(), read = Arrays.asList(schema.fieldNames()),
         out = new ArrayList();
    for (int i = 0; i < skippable.size(); i++)
      if (read.contains(skippable.get(i)))
        out.add(Expressions.column(IcebergPyBridge.quote((String) skippable.get(i))));
    return (NamedReference[]) out.toArray(new NamedReference[0]);
  }
  /** A task for each group is what only joins of groups want: where that is asked for. */
  public Partitioning outputPartitioning() {
    Transform[] keys = table.grouping();
    if (keys.length == 0 || !isAsked(IcebergPyReadOptions.GROUPED) || !isKnownToExecutors(keys))
      return new UnknownPartitioning(0);
    return new KeyGroupedPartitioning(keys, 0);
  }
  /** With its setting Spark shuffles rows by the functions of keys: executors have none of ours. */
  private static boolean isKnownToExecutors(Transform[] keys) {
    for (int i = 0; i < keys.length; i++)
      if (!keys[i].name().equals("identity") && shufflesToGroups()) return false;
    return true;
  }
  /** Whether Spark shuffles one side of a join into the groups of the other. */
  static boolean shufflesToGroups() {
    return IcebergPySessions.active()
        .sessionState()
        .conf()
        .getConfString(SHUFFLED, "false")
        .equalsIgnoreCase("true");
  }
  /** Whether Spark shall be told what files are sorted by, which it takes on trust from them. */
  boolean isOrderWanted() { return isAsked(IcebergPyReadOptions.ORDERED); }
  private boolean isAsked(String name) {
    Boolean flag = IcebergPyReadOptions.flag(options, name,
        IcebergPySessions.active().sessionState().conf(), IcebergPyReadOptions.PLANNING + name);
    return flag != null && flag.booleanValue();
  }
  /** Not called: Spark filters the scan that the rule puts in this place. */
  public void filter(Predicate[] predicates) {}
  public boolean equals(Object other) {
    return other instanceof IcebergPyScan && ((IcebergPyScan) other).table.equals(table)
        && ((IcebergPyScan) other).schema.equals(schema)
        && ((IcebergPyScan) other).options.equals(options);
  }
  public int hashCode() { return table.hashCode(); }
}
