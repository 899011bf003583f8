import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;

/** The functions of all our catalogs, also for tables that are not in a catalog. */
class IcebergPyFunctions implements FunctionCatalog {
  static final IcebergPyFunctions INSTANCE = new IcebergPyFunctions();

  public void initialize(String name, CaseInsensitiveStringMap options) {}
  public String name() { return "iceberg_pyspark"; }
  public Identifier[] listFunctions(String[] namespace) {
    String[] names = IcebergPyFunction.NAMES;
    Identifier[] out = new Identifier[hasFunctions(namespace) ? names.length + 1 : 0];
    for (int i = 0; i < out.length; i++)
      out[i] = Identifier.of(namespace, i < names.length ? names[i] : IcebergPyVersion.NAME);
    return out;
  }
  public UnboundFunction loadFunction(Identifier identifier) {
    String function = identifier.name().toLowerCase(java.util.Locale.ROOT);
    UnboundFunction unbound =
        hasFunctions(identifier.namespace()) ? IcebergPyFunction.ofName(function) : null;
    if (unbound == null) Platform.throwException(new NoSuchFunctionException(identifier));
    return unbound;
  }
  static boolean isVersion(Identifier identifier) {
    return hasFunctions(identifier.namespace())
        && identifier.name().equalsIgnoreCase(IcebergPyVersion.NAME);
  }
  /** Spark looks up the functions of partitions in the empty namespace. */
  private static boolean hasFunctions(String[] namespace) {
    return namespace.length == 0
        || namespace.length == 1 && namespace[0].equalsIgnoreCase("system");
  }
}
