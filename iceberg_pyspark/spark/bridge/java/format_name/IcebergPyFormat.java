import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceCreationResult;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;

/**
 * The format `iceberg-py`. With Iceberg installed, Spark's own Python data source of this name also
 * supports the session's catalogs and every mode of `save`; otherwise it is unchanged.
 */
public class IcebergPyFormat
    extends PythonDataSourceV2 implements CreatableRelationProvider, DataSourceRegister {
  static final String NAME = "iceberg-py";

  private IcebergPyFormat original;

  public String shortName() { return NAME; }
  /** Python knows only this name, whatever name the user asked for. */
  public void setShortName(String name) { super.setShortName(NAME); }

  public PythonDataSourceCreationResult getOrCreateDataSourceInPython(
      String name, CaseInsensitiveStringMap options, scala.Option schema) {
    if (original != null) return original.getOrCreateDataSourceInPython(name, options, schema);
    CaseInsensitiveStringMap resolved = isNative(options)
        ? new CaseInsensitiveStringMap(tableOptions(options.asCaseSensitiveMap()))
        : options;
    return super.getOrCreateDataSourceInPython(name, resolved, schema);
  }

  /**
   * Return a format with the same Python object, for a scan of other columns, because Spark keeps
   * the first plan of a source object.
   */
  IcebergPyFormat forOtherColumns() {
    IcebergPyFormat format = new IcebergPyFormat();
    format.setShortName(NAME);
    format.original = this;
    return format;
  }

  public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
    return isNative(new CaseInsensitiveStringMap(properties))
        ? new IcebergPyFormatTable(this, schema, properties)
        : super.getTable(schema, partitioning, properties);
  }

  /** The conversion refuses types that Iceberg lacks, and names the columns. */
  public boolean supportsDataType(DataType type) { return true; }

  public BaseRelation createRelation(
      SQLContext context, SaveMode mode, scala.collection.immutable.Map parameters, Dataset rows) {
    Map options = tableOptions(asJava(parameters));
    String session = IcebergPyBridge.session();
    boolean creates = mode == SaveMode.ErrorIfExists || mode == SaveMode.Ignore;
    if (creates) {
      IcebergPyExistingTable existing = IcebergPyRequests.sourceTable(options);
      if (existing.name() != null && mode == SaveMode.Ignore)
        return new IcebergPySavedRelation(context);
      if (existing.name() != null) refuse(existing);
    }
    IcebergPyRequests.sourceWrite(session, options, mode == SaveMode.Overwrite, creates, rows);
    return new IcebergPySavedRelation(context);
  }

  private static void refuse(IcebergPyExistingTable existing) {
    List namespace = existing.namespace();
    Platform.throwException(new TableAlreadyExistsException(Identifier.of(
        (String[]) namespace.toArray(new String[namespace.size()]), existing.name())));
  }

  /** Return the options; if they name a table of the session's catalogs, with how to open it. */
  static Map tableOptions(Map options) {
    return IcebergPyRequests.sourceOptions(IcebergPyBridge.session(), options).options();
  }
  /** Return the options, with their names as the user wrote them. */
  private static Map asJava(scala.collection.immutable.Map parameters) {
    return new HashMap(scala.jdk.javaapi.CollectionConverters.asJava(
        parameters instanceof CaseInsensitiveMap ? ((CaseInsensitiveMap) parameters).originalMap()
                                                 : parameters));
  }

  /** Return whether Iceberg is installed, and the read or write does not decline it. */
  static boolean isNative(CaseInsensitiveStringMap options) {
    return isInstalled() && !"false".equalsIgnoreCase(options.get("native"));
  }
  static boolean isInstalled() { return IcebergPySessions.isInstalled(IcebergPySessions.active()); }
}
