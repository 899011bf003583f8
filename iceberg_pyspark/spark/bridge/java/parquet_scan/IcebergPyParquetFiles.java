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
 * Parquet files that Python chose: a table of the columns to read and of the constants about each
 * file.
 */
public class IcebergPyParquetFiles implements IcebergPyFiles {
  private static final String NESTED_FILTERS =
      "spark.sql.optimizer.nestedPredicatePushdown.supportedFileSources";
  final org.apache.spark.sql.classic.SparkSession session;
  final String table;
  /** Equal for equal files, columns and constants. */
  final String key;
  final IcebergPyPlannedFiles files;
  /** What to read of the files, each column with its field id. */
  final StructType columns;
  /** Of the columns that are read those without a null. */
  private final List neverNull;
  /** Hadoop's options, for these files alone. */
  final Map options;
  final long rows;
  /** Of the columns that run-time filters may skip files by, what the table calls them. */
  final Map filterNames;
  /** Numbers of the plan by their names. */
  final Map planNumbers;
  /** What the rows of each file are sorted by. */
  private final List sortedBy;
  /** `description` is a `ParquetRelation` of bridge/calls.py. */
  IcebergPyParquetFiles(org.apache.spark.sql.classic.SparkSession session, Map description,
      IcebergPyPlannedFiles files) {
    this.session = session;
    this.files = files;
    table = (String) description.get("table");
    key = (String) description.get("key");
    columns = (StructType) DataType.fromJson((String) description.get("columns"));
    neverNull = (List) description.get("never_null");
    options = (Map) description.get("options");
    rows = ((Number) description.get("rows")).longValue();
    filterNames = (Map) description.get("filtered");
    planNumbers = (Map) description.get("planned");
    sortedBy = (List) description.get("sorted_by");
  }
  public String name() { return table; }
  /** Spark's reader gives constants after all that it reads. */
  public StructType schema() {
    StructType all = columns;
    StructField[] constants = files.constantSchema.fields();
    for (int i = 0; i < constants.length; i++) all = all.add(constants[i]);
    return all;
  }
  /** Without the metadata of fields, which is for the reader alone. */
  public Column[] columns() {
    StructField[] fields = schema().fields();
    Column[] out = new Column[fields.length];
    for (int i = 0; i < out.length; i++)
      out[i] = Column.create(fields[i].name(), fields[i].dataType(),
          fields[i].nullable() && !neverNull.contains(fields[i].name()));
    return out;
  }
  public Set capabilities() { return EnumSet.of(TableCapability.BATCH_READ); }
  public String[] paths() { return files.paths; }
  public long rows() { return rows; }
  public boolean isGrouped() { return files.keys != null; }
  /** What a task would read of several files, or of pieces of one, is in no order. */
  public List sortedBy(IcebergPySplits splits) {
    long most = splits.mostBytes(session, files.sizes);
    boolean one = new HashSet(Arrays.asList(files.keys)).size() == files.keys.length;
    for (int i = 0; i < files.sizes.length; i++) one &= files.sizes[i] <= most;
    return one ? sortedBy : new ArrayList();
  }
  public boolean isRead(String column) { return columns.getFieldIndex(column).isDefined(); }
  public boolean readsNestedFilters() {
    String formats = session.conf().get(NESTED_FILTERS, "parquet,orc");
    return Arrays.asList(formats.toLowerCase().split(",")).contains("parquet");
  }
  public Scan scan(org.apache.spark.sql.sources.Filter[] filters, Map question,
      IcebergPySplits splits, Map statistics) {
    return new IcebergPyParquetScan(this, filters, question, splits, statistics);
  }
  public boolean equals(Object other) {
    return other instanceof IcebergPyParquetFiles
        && ((IcebergPyParquetFiles) other).key.equals(key);
  }
  public int hashCode() { return key.hashCode(); }
}
