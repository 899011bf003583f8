import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Parquet files that Python planned: a table of the columns to read, and of the constants of each
 * file.
 */
public class IcebergPyParquetFiles implements IcebergPyFiles {
  private static final String NESTED_FILTERS =
      "spark.sql.optimizer.nestedPredicatePushdown.supportedFileSources";
  final org.apache.spark.sql.classic.SparkSession session;
  final String table;
  /** Equal for equal files, columns and constants. */
  /** Equal for tables with equal rows. */
  final String key;
  final IcebergPyPlannedFiles files;
  /** The columns to read from the files, each with its field id. */
  final StructType columns;
  /** The names of the read columns that contain no null. */
  private final List nonNullColumns;
  /** Hadoop's options for these files only. */
  final Map options;
  final long rows;
  /** By the manifests, which may be wrong. */
  final long rowsOfLargestFile;
  /** The table's names of the columns by which runtime filters may skip files. */
  final Map filterColumns;
  /** Metrics of the plan, by name. */
  final Map planMetrics;
  /** The order of the rows in each file. */
  private final List sortOrder;
  /** `description` is a `ParquetRelation` of bridge/call_arguments.py. */
  IcebergPyParquetFiles(org.apache.spark.sql.classic.SparkSession session, Map description,
      String key, IcebergPyPlannedFiles files) {
    this.session = session;
    this.files = files;
    table = (String) description.get("table");
    this.key = key;
    columns = (StructType) DataType.fromJson((String) description.get("columns"));
    nonNullColumns = (List) description.get("non_null_columns");
    options = (Map) description.get("options");
    rows = ((Number) description.get("rows")).longValue();
    rowsOfLargestFile = ((Number) description.get("rows_of_largest_file")).longValue();
    filterColumns = (Map) description.get("filter_columns");
    planMetrics = (Map) description.get("plan_metrics");
    sortOrder = (List) description.get("sort_order");
  }
  private IcebergPyParquetFiles(IcebergPyParquetFiles like, String key, StructType columns) {
    this.session = like.session;
    this.files = like.files;
    this.table = like.table;
    this.key = key;
    this.columns = columns;
    this.nonNullColumns = like.nonNullColumns;
    this.options = like.options;
    this.rows = like.rows;
    this.rowsOfLargestFile = like.rowsOfLargestFile;
    this.filterColumns = like.filterColumns;
    this.planMetrics = like.planMetrics;
    this.sortOrder = like.sortOrder;
  }
  public IcebergPyFiles withFields(Map structs) {
    StructType out = new StructType();
    for (int i = 0; i < columns.fields().length; i++) {
      StructField f = columns.fields()[i];
      DataType type =
          structs.containsKey(f.name()) ? (DataType) structs.get(f.name()) : f.dataType();
      out = out.add(f.name(), type, f.nullable(), f.metadata());
    }
    return new IcebergPyParquetFiles(this, key + "#" + out.json(), out);
  }
  public String name() { return table; }
  /** Spark's reader returns the constants after all columns that it reads. */
  public StructType schema() {
    StructType all = columns;
    StructField[] constants = files.constantSchema.fields();
    for (int i = 0; i < constants.length; i++) all = all.add(constants[i]);
    return all;
  }
  /** Return the columns without the metadata of fields, which only the reader needs. */
  public Column[] columns() {
    StructField[] fields = schema().fields();
    Column[] out = new Column[fields.length];
    for (int i = 0; i < out.length; i++)
      out[i] = Column.create(fields[i].name(), fields[i].dataType(),
          fields[i].nullable() && !nonNullColumns.contains(fields[i].name()));
    return out;
  }
  public Set capabilities() { return EnumSet.of(TableCapability.BATCH_READ); }
  public String[] paths() { return files.paths; }
  public long rows() { return rows; }
  public boolean isGrouped() { return files.keys != null; }
  /** Empty if a task reads several files or splits, because their rows are in no order. */
  public List sortOrder(IcebergPySplits splits) {
    long most = splits.maxSplitBytes(session, files.sizes);
    boolean one = new HashSet(Arrays.asList(files.keys)).size() == files.keys.length;
    for (int i = 0; i < files.sizes.length; i++)
      one &= files.sizes[i] <= most || files.hasOneRowGroup(i);
    return one ? sortOrder : new ArrayList();
  }
  public boolean isRead(String column) { return columns.getFieldIndex(column).isDefined(); }
  public boolean readsNestedFilters() {
    String formats = session.conf().get(NESTED_FILTERS, "parquet,orc");
    return Arrays.asList(formats.toLowerCase().split(",")).contains("parquet");
  }
  public Scan scan(org.apache.spark.sql.sources.Filter[] filters, Map scanDefinition,
      IcebergPySplits splits, Map statistics) {
    return new IcebergPyParquetScan(this, filters, scanDefinition, splits, statistics);
  }
  public boolean equals(Object other) {
    return other instanceof IcebergPyParquetFiles
        && ((IcebergPyParquetFiles) other).key.equals(key);
  }
  public int hashCode() { return key.hashCode(); }
}
