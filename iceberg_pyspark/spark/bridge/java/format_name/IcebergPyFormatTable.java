import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A table of the format, with hidden columns. Spark passes writes on as a whole, with their mode,
 * instead of refusing the modes that need a catalog.
 */
public class IcebergPyFormatTable extends PythonTable implements SupportsMetadataColumns {
  private final IcebergPyFormat format;
  private final Map options;

  IcebergPyFormatTable(IcebergPyFormat format, StructType schema, Map options) {
    super(format, IcebergPyFormat.NAME, schema);
    this.format = format;
    this.options = options;
  }

  public Set capabilities() {
    Set all = new HashSet(super.capabilities());
    // a view may still exist after uninstall()
    if (IcebergPyFormat.isInstalled() && all.remove(TableCapability.BATCH_WRITE))
      all.add(TableCapability.V1_BATCH_WRITE);
    return all;
  }

  /** Spark calls this if a name is not one of the other columns. */
  public MetadataColumn[] metadataColumns() {
    if (!IcebergPyFormat.isInstalled()) return new MetadataColumn[0];
    StructType hidden = (StructType) DataType.fromJson(
        IcebergPyRequests.sourceHiddenColumns(IcebergPyBridge.session(), options).columns());
    MetadataColumn[] out = new MetadataColumn[hidden.fields().length];
    for (int i = 0; i < out.length; i++) out[i] = new IcebergPyMetadataColumn(hidden.fields()[i]);
    return out;
  }
  public boolean canRenameConflictingMetadataColumns() { return true; }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new IcebergPyFormatScanBuilder(this, options);
  }
  /** Return the table's options, completed by those of a read. */
  Map optionsWith(CaseInsensitiveStringMap more) {
    Map all = new HashMap(options);
    all.putAll(more.asCaseSensitiveMap());
    return all;
  }
  /** Return a builder for all columns, as Python returns them, and for hidden columns. */
  ScanBuilder newScanBuilder(StructType hidden, CaseInsensitiveStringMap options) {
    if (hidden.isEmpty()) return super.newScanBuilder(options);
    StructType all = new StructType(schema().fields());
    for (int i = 0; i < hidden.fields().length; i++) all = all.add(hidden.fields()[i]);
    return new PythonTable(format.forOtherColumns(), IcebergPyFormat.NAME, all)
        .newScanBuilder(options);
  }
}
