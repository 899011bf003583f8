import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Makes Spark's Python data source read hidden columns that a query names. */
class IcebergPyFormatScanBuilder implements ScanBuilder, SupportsPushDownRequiredColumns {
  private final IcebergPyFormatTable table;
  private final CaseInsensitiveStringMap options;
  private StructType hidden = new StructType();

  IcebergPyFormatScanBuilder(IcebergPyFormatTable table, CaseInsensitiveStringMap options) {
    this.table = table;
    this.options = options;
  }
  public void pruneColumns(StructType required) {
    List plain = Arrays.asList(table.schema().fieldNames());
    StructType columns = new StructType();
    for (int i = 0; i < required.fields().length; i++) {
      StructField field = required.fields()[i];
      if (!plain.contains(field.name())) columns = columns.add(field);
    }
    hidden = columns;
  }
  public Scan build() {
    Scan scan = table.newScanBuilder(hidden, options).build();
    Map all = table.optionsWith(options);
    return IcebergPyFormat.isNative(new CaseInsensitiveStringMap(all))
        ? (Scan) new IcebergPyFormatScan(scan, all)
        : scan;
  }
}
