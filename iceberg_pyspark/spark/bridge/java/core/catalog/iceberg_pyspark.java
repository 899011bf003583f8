import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.CatalogExtension;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Transform;

/**
 * The class for `spark.sql.catalog.<name> = iceberg_pyspark`. As `spark_catalog`, it wraps Spark's
 * own catalog: an Iceberg table has precedence, any other table is Spark's, and a namespace may be
 * in both catalogs.
 */
public class iceberg_pyspark extends IcebergPyCatalogOfRelease implements CatalogExtension {
  /** Spark's own catalog; null for a catalog of another name. */
  private CatalogPlugin spark;

  /** As Spark's own catalog, it has that catalog's default, whatever its properties say. */
  public String[] defaultNamespace() {
    return spark == null ? super.defaultNamespace() : spark.defaultNamespace();
  }
  public void setDelegateCatalog(CatalogPlugin delegate) { this.spark = delegate; }
  private TableCatalog tables() { return (TableCatalog) spark; }
  private SupportsNamespaces namespaces() { return (SupportsNamespaces) spark; }
  private FunctionCatalog functions() { return (FunctionCatalog) spark; }

  /** Return the catalog without Spark's tables. */
  IcebergPyCatalog icebergTables() { return new IcebergPyCatalog(this); }
  /** Return whether a name, which may be one of Spark's tables too, is that of an Iceberg table. */
  boolean hasIcebergTable(Identifier identifier) { return super.tableExists(identifier); }
  static boolean isIceberg(String provider) {
    return provider.equalsIgnoreCase("iceberg") || provider.equalsIgnoreCase("iceberg-py");
  }

  /** Return whether Spark's catalog, whose namespaces have one level, may have such a table. */
  private boolean mayBeSparks(Identifier identifier) {
    return spark != null && identifier.namespace().length == 1;
  }
  private boolean isSparks(Identifier identifier) {
    return mayBeSparks(identifier) && tables().tableExists(identifier);
  }
  private boolean isSparks(String[] namespace) {
    return spark != null && namespace.length == 1 && namespaces().namespaceExists(namespace);
  }

  public Table loadTable(Identifier identifier) throws NoSuchTableException {
    try {
      return super.loadTable(identifier);
    } catch (NoSuchTableException e) {
      if (!mayBeSparks(identifier)) throw e;
      return tables().loadTable(identifier);
    }
  }
  public Table loadTable(Identifier identifier, String version) throws NoSuchTableException {
    try {
      return super.loadTable(identifier, version);
    } catch (NoSuchTableException e) {
      if (!mayBeSparks(identifier)) throw e;
      return tables().loadTable(identifier, version);
    }
  }
  public Table loadTable(Identifier identifier, long timestampMicros) throws NoSuchTableException {
    try {
      return super.loadTable(identifier, timestampMicros);
    } catch (NoSuchTableException e) {
      if (!mayBeSparks(identifier)) throw e;
      return tables().loadTable(identifier, timestampMicros);
    }
  }
  public boolean tableExists(Identifier identifier) {
    return super.tableExists(identifier) || isSparks(identifier);
  }
  public void invalidateTable(Identifier identifier) {
    super.invalidateTable(identifier);
    if (mayBeSparks(identifier)) tables().invalidateTable(identifier);
  }
  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    if (!isSparks(namespace)) return super.listTables(namespace);
    List all = new ArrayList(Arrays.asList(tables().listTables(namespace)));
    if (super.namespaceExists(namespace)) addNew(all, super.listTables(namespace));
    return (Identifier[]) all.toArray(new Identifier[all.size()]);
  }
  private static void addNew(List all, Object[] more) {
    for (int i = 0; i < more.length; i++)
      if (!all.contains(more[i])) all.add(more[i]);
  }

  public Table createTable(Identifier identifier, Column[] columns, Transform[] partitions,
      Map properties) throws TableAlreadyExistsException, NoSuchNamespaceException {
    if (!isOurs(properties)) {
      if (super.tableExists(identifier)) throw new TableAlreadyExistsException(identifier);
      return tables().createTable(identifier, columns, partitions, properties);
    }
    prepare(identifier);
    return super.createTable(identifier, columns, partitions, properties);
  }
  public StagedTable stageCreate(Identifier identifier, Column[] columns, Transform[] partitions,
      Map properties) throws TableAlreadyExistsException, NoSuchNamespaceException {
    checkStaged(identifier, properties);
    prepare(identifier);
    return super.stageCreate(identifier, columns, partitions, properties);
  }
  public StagedTable stageReplace(Identifier identifier, Column[] columns, Transform[] partitions,
      Map properties) throws NoSuchTableException, NoSuchNamespaceException {
    checkStaged(identifier, properties);
    checkReplaced(identifier);
    return super.stageReplace(identifier, columns, partitions, properties);
  }
  public StagedTable stageCreateOrReplace(Identifier identifier, Column[] columns,
      Transform[] partitions, Map properties) throws NoSuchNamespaceException {
    checkStaged(identifier, properties);
    checkReplaced(identifier);
    prepareNamespace(identifier.namespace());
    return super.stageCreateOrReplace(identifier, columns, partitions, properties);
  }
  /** Return whether a new table is an Iceberg table: no provider, or a name of Iceberg. */
  private boolean isOurs(Map properties) {
    String provider = (String) properties.get("provider");
    return spark == null || provider == null || isIceberg(provider);
  }
  private void checkStaged(Identifier identifier, Map properties) {
    if (!isOurs(properties))
      throw new IcebergPyUnsupportedFeatureException("table " + identifier
          + ": spark_catalog makes and replaces "
          + "tables of a query USING iceberg and of Spark's own formats, not USING "
          + properties.get("provider") + "; create the table first, then INSERT INTO it");
  }
  private void checkReplaced(Identifier identifier) {
    if (isSparks(identifier) && !super.tableExists(identifier))
      throw new IcebergPyUnsupportedFeatureException("table " + identifier
          + " is not an Iceberg table, and only "
          + "those can be replaced; drop it first, or choose another name");
  }
  /** Prepare for a new Iceberg table, whose name must not hide a table of Spark. */
  private void prepare(Identifier identifier) throws TableAlreadyExistsException {
    if (isSparks(identifier)) throw new TableAlreadyExistsException(identifier);
    prepareNamespace(identifier.namespace());
  }
  /** Create Spark's namespace in our catalog too, before an Iceberg table is created there. */
  private void prepareNamespace(String[] namespace) {
    if (!isSparks(namespace) || super.namespaceExists(namespace)) return;
    try {
      super.createNamespace(namespace, new HashMap());
    } catch (NamespaceAlreadyExistsException e) {
      // another writer has created it first
      return;
    }
  }

  public Table alterTable(Identifier identifier, TableChange[] changes)
      throws NoSuchTableException {
    return isSparks(identifier) && !super.tableExists(identifier)
        ? tables().alterTable(identifier, changes)
        : super.alterTable(identifier, changes);
  }
  public boolean dropTable(Identifier identifier) {
    return super.dropTable(identifier) || mayBeSparks(identifier) && tables().dropTable(identifier);
  }
  public boolean purgeTable(Identifier identifier) {
    return super.purgeTable(identifier)
        || mayBeSparks(identifier) && tables().purgeTable(identifier);
  }
  public void renameTable(Identifier from, Identifier to)
      throws NoSuchTableException, TableAlreadyExistsException {
    if (spark == null || super.tableExists(from)) {
      if (isSparks(to)) throw new TableAlreadyExistsException(to);
      prepareNamespace(to.namespace());
      super.renameTable(from, to);
    } else {
      if (super.tableExists(to)) throw new TableAlreadyExistsException(to);
      tables().renameTable(from, to);
    }
  }

  public String[][] listNamespaces() throws NoSuchNamespaceException {
    return listNamespaces(new String[0]);
  }
  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    boolean both = spark != null && (namespace.length == 0 || isSparks(namespace));
    if (!both) return super.listNamespaces(namespace);
    List names = new ArrayList();
    addLevels(names, namespaces().listNamespaces(namespace));
    if (namespace.length == 0 || super.namespaceExists(namespace))
      addLevels(names, super.listNamespaces(namespace));
    String[][] out = new String[names.size()][];
    for (int i = 0; i < out.length; i++)
      out[i] = (String[]) ((List) names.get(i)).toArray(new String[0]);
    return out;
  }
  private static void addLevels(List all, String[][] more) {
    for (int i = 0; i < more.length; i++)
      if (!all.contains(Arrays.asList(more[i]))) all.add(Arrays.asList(more[i]));
  }
  public boolean namespaceExists(String[] namespace) {
    return isSparks(namespace) || super.namespaceExists(namespace);
  }
  public Map loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    return isSparks(namespace) ? namespaces().loadNamespaceMetadata(namespace)
                               : super.loadNamespaceMetadata(namespace);
  }
  public void createNamespace(String[] namespace, Map properties)
      throws NamespaceAlreadyExistsException {
    if (spark == null || namespace.length != 1) {
      super.createNamespace(namespace, properties);
      return;
    }
    if (super.namespaceExists(namespace)) throw new NamespaceAlreadyExistsException(namespace);
    namespaces().createNamespace(namespace, properties);
  }
  public void alterNamespace(String[] namespace, NamespaceChange[] changes)
      throws NoSuchNamespaceException {
    if (isSparks(namespace))
      namespaces().alterNamespace(namespace, changes);
    else
      super.alterNamespace(namespace, changes);
  }
  /** Drop Spark's namespace first: Spark may refuse, and the rest of ours can be dropped again. */
  public boolean dropNamespace(String[] namespace, boolean cascade)
      throws NoSuchNamespaceException, NonEmptyNamespaceException {
    if (!isSparks(namespace)) return super.dropNamespace(namespace, cascade);
    boolean both = super.namespaceExists(namespace);
    if (both && !cascade
        && super.listTables(namespace).length + super.listNamespaces(namespace).length > 0)
      throw new NonEmptyNamespaceException(namespace);
    boolean dropped = namespaces().dropNamespace(namespace, cascade);
    if (both) super.dropNamespace(namespace, cascade);
    return dropped;
  }

  public Identifier[] listFunctions(String[] namespace) throws NoSuchNamespaceException {
    return isSparks(namespace) ? functions().listFunctions(namespace)
                               : super.listFunctions(namespace);
  }
  public UnboundFunction loadFunction(Identifier identifier) throws NoSuchFunctionException {
    try {
      return super.loadFunction(identifier);
    } catch (NoSuchFunctionException e) {
      if (!mayBeSparks(identifier)) throw e;
      return functions().loadFunction(identifier);
    }
  }
}
