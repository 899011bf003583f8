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
 * The format `iceberg-py` where Iceberg is installed: Spark's own Python data source of that name,
 * which knows the catalogs of the session and every mode of `save`. Elsewhere it is that source as
 * it is.
 */
public class IcebergPyFormat
    extends PythonDataSourceV2 implements CreatableRelationProvider, DataSourceRegister {
  static final String NAME = "iceberg-py";

  private IcebergPyFormat pinned;

  public String shortName() { return NAME; }
  /** Whatever name it was asked for by: Python knows this one. */
  public void setShortName(String name) { super.setShortName(NAME); }

  public PythonDataSourceCreationResult getOrCreateDataSourceInPython(
      String name, CaseInsensitiveStringMap options, scala.Option schema) {
    if (pinned != null) return pinned.getOrCreateDataSourceInPython(name, options, schema);
    CaseInsensitiveStringMap resolved = isServed(options)
        ? new CaseInsensitiveStringMap(named(options.asCaseSensitiveMap()))
        : options;
    return super.getOrCreateDataSourceInPython(name, resolved, schema);
  }

  /**
   * The same Python object, for a scan of other columns: Spark keeps the first plan of a source's.
   */
  IcebergPyFormat forOtherColumns() {
    IcebergPyFormat format = new IcebergPyFormat();
    format.setShortName(NAME);
    format.pinned = this;
    return format;
  }

  public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
    return isServed(new CaseInsensitiveStringMap(properties))
        ? new IcebergPyFormatTable(this, schema, properties)
        : super.getTable(schema, partitioning, properties);
  }

  /** Types that Iceberg has not are refused where they are converted, by the names of columns. */
  public boolean supportsDataType(DataType type) { return true; }

  public BaseRelation createRelation(
      SQLContext context, SaveMode mode, scala.collection.immutable.Map parameters, Dataset rows) {
    Map options = named(asJava(parameters));
    String session = IcebergPyBridge.session();
    boolean creates = mode == SaveMode.ErrorIfExists || mode == SaveMode.Ignore;
    if (creates) {
      IcebergPyExistingTable there = IcebergPyQuestions.sourceTable(options);
      if (there.name() != null && mode == SaveMode.Ignore) return new IcebergPySaved(context);
      if (there.name() != null) refuse(there);
    }
    IcebergPyQuestions.sourceWrite(session, options, mode == SaveMode.Overwrite, creates, rows);
    return new IcebergPySaved(context);
  }

  private static void refuse(IcebergPyExistingTable there) {
    List namespace = there.namespace();
    Platform.throwException(new TableAlreadyExistsException(
        Identifier.of((String[]) namespace.toArray(new String[namespace.size()]), there.name())));
  }

  /** The options, and where they name a table of one of the session's catalogs, how to open it. */
  private static Map named(Map options) {
    return IcebergPyQuestions.sourceOptions(IcebergPyBridge.session(), options).options();
  }
  /** With the names of options as they were written. */
  private static Map asJava(scala.collection.immutable.Map parameters) {
    return new HashMap(scala.jdk.javaapi.CollectionConverters.asJava(
        parameters instanceof CaseInsensitiveMap ? ((CaseInsensitiveMap) parameters).originalMap()
                                                 : parameters));
  }

  /** Whether Iceberg is installed in the session, and a read or write does not decline it. */
  private static boolean isServed(CaseInsensitiveStringMap options) {
    return isInstalled() && !"false".equalsIgnoreCase(options.get("native"));
  }
  static boolean isInstalled() { return IcebergPySessions.isInstalled(IcebergPySessions.active()); }
}
