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
    Identifier[] out = new Identifier[hasFunctions(namespace) ? IcebergPyFunction.NAMES.length : 0];
    for (int i = 0; i < out.length; i++)
      out[i] = Identifier.of(namespace, IcebergPyFunction.NAMES[i]);
    return out;
  }
  public UnboundFunction loadFunction(Identifier identifier) {
    String function = identifier.name().toLowerCase(java.util.Locale.ROOT);
    UnboundFunction unbound =
        hasFunctions(identifier.namespace()) ? IcebergPyFunction.ofName(function) : null;
    if (unbound == null) Platform.throwException(new NoSuchFunctionException(identifier));
    return unbound;
  }
  /** Spark looks up the functions of partitions in the empty namespace. */
  private static boolean hasFunctions(String[] namespace) {
    return namespace.length == 0
        || namespace.length == 1 && namespace[0].equalsIgnoreCase("system");
  }
}
