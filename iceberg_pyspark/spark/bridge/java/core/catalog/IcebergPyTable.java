import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table as of its load; `handle` names the metadata and the snapshot that Python keeps. */
public class IcebergPyTable
    implements Table, SupportsRead, SupportsMetadataColumns, SupportsWrite, TruncatableTable {
  final String handle;
  private final IcebergPyTableDefinition definition;
  private final StructType schema;
  private Map columnStatistics;
  IcebergPyTable(IcebergPyTableDefinition definition) {
    this.definition = definition;
    this.handle = definition.handle();
    boolean nanos = definition.nanosSchema() != null
        && SQLConf.get()
               .getConfString("spark.sql.timestampNanosTypes.enabled", "false")
               .equalsIgnoreCase("true");
    this.schema =
        (StructType) DataType.fromJson(nanos ? definition.nanosSchema() : definition.schema());
  }
  /** Return the handle for the batches of a stream. */
  String handleToWrite() { return handle; }
  public String name() { return definition.name(); }
  public String id() { return definition.id(); }
  /** Spark loads the table of a reused DataFrame again, and uses a newer version. */
  public String version() { return definition.version(); }
  public StructType schema() { return schema; }
  public Map properties() { return definition.properties(); }
  public Transform[] partitioning() { return transforms(definition.partitioning(), false); }
  /** Return the keys that all files of the table can be grouped by. */
  Transform[] grouping() { return transforms(definition.grouping(), true); }
  /** Spark groups only by functions of one argument, so `keys` puts the number into the name. */
  private static Transform[] transforms(List fields, boolean keys) {
    Transform[] out = new Transform[fields.size()];
    for (int i = 0; i < out.length; i++) {
      IcebergPyPartitionTransform t = (IcebergPyPartitionTransform) fields.get(i);
      String kind = t.transform(), column = t.column();
      if (kind.equals("identity"))
        out[i] = org.apache.spark.sql.connector.expressions.Expressions.identity(column);
      else if (kind.equals("bucket"))
        out[i] = org.apache.spark.sql.connector.expressions.Expressions.bucket(
            t.number().intValue(), new String[] {column});
      else if (kind.equals("years"))
        out[i] = org.apache.spark.sql.connector.expressions.Expressions.years(column);
      else if (kind.equals("months"))
        out[i] = org.apache.spark.sql.connector.expressions.Expressions.months(column);
      else if (kind.equals("days"))
        out[i] = org.apache.spark.sql.connector.expressions.Expressions.days(column);
      else if (keys && kind.equals("truncate"))
        out[i] = org.apache.spark.sql.connector.expressions.Expressions.apply(
            IcebergPyFunction.ofName(kind, t.number().intValue()),
            new org.apache.spark.sql.connector.expressions.Expression[] {
                org.apache.spark.sql.connector.expressions.Expressions.column(column)});
      else if (kind.equals("hours"))
        out[i] = org.apache.spark.sql.connector.expressions.Expressions.hours(column);
      else
        out[i] = org.apache.spark.sql.connector.expressions.Expressions.apply(kind,
            new org.apache.spark.sql.connector.expressions.Expression[] {
                org.apache.spark.sql.connector.expressions.Expressions.literal(
                    t.number() == null ? (Object) "" : t.number()),
                org.apache.spark.sql.connector.expressions.Expressions.column(column)});
    }
    return out;
  }
  public Set capabilities() {
    Set all = new HashSet(Arrays.asList(new TableCapability[] {TableCapability.BATCH_READ,
        TableCapability.MICRO_BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.TRUNCATE,
        TableCapability.OVERWRITE_BY_FILTER, TableCapability.OVERWRITE_DYNAMIC}));
    if (IcebergPyInternals.hasEpochs()) all.add(TableCapability.STREAMING_WRITE);
    if (definition.acceptAnySchema()) all.add(TableCapability.ACCEPT_ANY_SCHEMA);
    if (!"false".equalsIgnoreCase(
            (String) properties().get("write.spark.auto-schema-evolution.enabled")))
      IcebergPyInternals.addSchemaEvolution(all);
    return all;
  }
  public org.apache.spark.sql.connector.write.WriteBuilder newWriteBuilder(
      org.apache.spark.sql.connector.write.LogicalWriteInfo info) {
    return new IcebergPyWrite(this, info);
  }
  public boolean truncateTable() {
    IcebergPyRequests.tableTruncate(handle, IcebergPyCommand.environment());
    return true;
  }
  public MetadataColumn[] metadataColumns() {
    StructType columns = (StructType) DataType.fromJson(definition.metadataColumns());
    MetadataColumn[] out = new MetadataColumn[columns.fields().length];
    for (int i = 0; i < out.length; i++) out[i] = new IcebergPyMetadataColumn(columns.fields()[i]);
    return out;
  }
  public boolean canRenameConflictingMetadataColumns() { return true; }
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    IcebergPyReadOptions.checkSession(SQLConf.get());
    IcebergPyReadOptions.check(name(), options);
    Map selection = IcebergPyReadOptions.selection(options);
    return new IcebergPyScanBuilder(selection.isEmpty()
            ? this
            : new IcebergPyTable(IcebergPyRequests.tableSelect(handle, selection)),
        options);
  }
  /** The columns whose values differ between files, by which Spark may filter at run time. */
  List filterColumns() { return definition.filterColumns(); }
  /** Further columns, of which Python tells whether their values differ between files. */
  List comparedColumns() { return definition.comparedColumns(); }
  /** Return the number of rows in the table's files, or 0 if it is unknown. */
  long rows() { return definition.rows(); }
  /** Return the statistics of columns by reference; Python is called only once. */
  synchronized Map columnStatistics() {
    if (columnStatistics == null)
      columnStatistics = definition.hasColumnStatistics()
          ? IcebergPyColumnStatistics.of(
                IcebergPyRequests.scanStatistics(IcebergPyRule.scannedTable(handle, null))
                    .columns())
          : new HashMap();
    return columnStatistics;
  }
  long sizeInBytes() { return definition.sizeInBytes(); }
  public boolean equals(Object other) {
    return other instanceof IcebergPyTable && ((IcebergPyTable) other).handle.equals(handle);
  }
  public int hashCode() { return handle.hashCode(); }
  public String toString() { return name(); }
}
