import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.ChangelogRange;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The change feed of a table. If rows have row ids, Spark leaves out copied rows and finds updates;
 * if not, Python leaves copied rows out, and refuses what only Spark could do.
 */
public class IcebergPyChangelog implements Changelog {
  private static final String ROW_ID = "_row_id", ROW_VERSION = "_last_updated_sequence_number";
  private final IcebergPyTable table;
  private IcebergPyChangelog(IcebergPyTable table) { this.table = table; }

  /** Return the feed that Spark asks for; `catalog` is the catalog's handle. */
  public static Object of(String catalog, java.util.List namespace, String name,
      ChangelogContext context, CaseInsensitiveStringMap options) {
    ChangelogRange range = context.range();
    // a range without bounds throws if it is asked for their kinds
    boolean hasBounds = !(range instanceof ChangelogRange.UnboundedRange);
    String startVersion = null, endVersion = null;
    Long startTime = null, endTime = null;
    if (range instanceof ChangelogRange.VersionRange) {
      ChangelogRange.VersionRange versions = (ChangelogRange.VersionRange) range;
      startVersion = versions.startingVersion();
      endVersion = (String) orNull(versions.endingVersion());
    } else if (range instanceof ChangelogRange.TimestampRange) {
      ChangelogRange.TimestampRange times = (ChangelogRange.TimestampRange) range;
      startTime = Long.valueOf(times.startingTimestamp());
      endTime = (Long) orNull(times.endingTimestamp());
    }
    return new IcebergPyChangelog(new IcebergPyTable(IcebergPyRequests.changelogLoad(catalog,
        namespace, name, options.get("branch"), startVersion, endVersion, startTime, endTime,
        !hasBounds || range.startingBoundInclusive(), !hasBounds || range.endingBoundInclusive(),
        context.deduplicationMode().name(), context.computeUpdates())));
  }
  private static Object orNull(Optional bound) { return bound.isPresent() ? bound.get() : null; }

  public String name() { return table.name(); }
  public Column[] columns() {
    StructField[] fields = table.schema().fields();
    Column[] out = new Column[fields.length];
    for (int i = 0; i < out.length; i++)
      out[i] = Column.create(fields[i].name(), fields[i].dataType(), fields[i].nullable());
    return out;
  }
  /** The columns of a change are the last ones, so a table's own column is not taken for one. */
  private boolean hasRowIds() {
    StructField[] fields = table.schema().fields();
    return fields[fields.length - 1].name().equals(ROW_VERSION);
  }
  public boolean containsCarryoverRows() { return hasRowIds(); }
  public boolean containsIntermediateChanges() { return hasRowIds(); }
  public boolean representsUpdateAsDeleteAndInsert() { return hasRowIds(); }
  public NamedReference[] rowId() { return new NamedReference[] {Expressions.column(ROW_ID)}; }
  public NamedReference rowVersion() { return Expressions.column(ROW_VERSION); }
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    IcebergPyReadOptions.checkSession(SQLConf.get());
    IcebergPyReadOptions.check(name(), options);
    Map others = IcebergPyReadOptions.selection(options);
    others.remove("branch");
    if (!others.isEmpty())
      throw new IcebergPyInvalidRequestException("the option " + others.keySet().iterator().next()
          + " does not choose changes of " + name()
          + ": use startingVersion and endingVersion, which take ids of snapshots too");
    return new IcebergPyScanBuilder(table, options);
  }
}
