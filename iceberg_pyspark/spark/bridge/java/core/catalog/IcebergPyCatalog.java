import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.UnaryMinus;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;

/** A catalog that passes Spark's requests to Python. */
class IcebergPyCatalog
    implements StagingTableCatalog, SupportsNamespaces, FunctionCatalog, ProcedureCatalog {
  private String name;
  private String handle;
  private String[] defaultNamespace;
  private String release;
  /** Keeps the session's handle reachable: see `IcebergPySessionHandle`. */
  private IcebergPySessionHandle session;

  IcebergPyCatalog() {}
  /** The same catalog without what a subclass adds. */
  IcebergPyCatalog(IcebergPyCatalog other) {
    this.name = other.name;
    this.handle = other.handle;
    this.defaultNamespace = other.defaultNamespace;
    this.release = other.release;
    this.session = other.session;
  }

  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    this.session = IcebergPySessions.handleOf(IcebergPySessions.active());
    IcebergPyCatalogHandle opened = IcebergPyRequests.catalogOpen(
        session.text, name, new HashMap(options.asCaseSensitiveMap()));
    this.handle = opened.handle();
    this.defaultNamespace = strings(opened.defaultNamespace());
    this.release = opened.release();
  }
  public String name() { return name; }
  public String[] defaultNamespace() { return defaultNamespace; }

  private static List levels(String[] namespace) { return IcebergPyBridge.list(namespace); }
  private static List levels(Identifier identifier) { return levels(identifier.namespace()); }
  private static String[] strings(List all) {
    return (String[]) all.toArray(new String[all.size()]);
  }

  public Set capabilities() {
    return new HashSet(Arrays.asList(
        new TableCatalogCapability[] {TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE}));
  }

  public Identifier[] listFunctions(String[] namespace) throws NoSuchNamespaceException {
    return IcebergPyFunctions.INSTANCE.listFunctions(namespace);
  }
  public UnboundFunction loadFunction(Identifier identifier) throws NoSuchFunctionException {
    return IcebergPyFunctions.isVersion(identifier)
        ? new IcebergPyVersion(release)
        : IcebergPyFunctions.INSTANCE.loadFunction(identifier);
  }

  public UnboundProcedure loadProcedure(Identifier identifier) {
    return new IcebergPyProcedure(name, handle, defaultNamespace(),
        IcebergPyRequests.procedureLoad(handle, levels(identifier), identifier.name()));
  }
  /** Spark calls this since 4.1. */
  public Identifier[] listProcedures(String[] namespace) {
    List names = IcebergPyRequests.proceduresList(handle, levels(namespace)).names();
    Identifier[] out = new Identifier[names.size()];
    for (int i = 0; i < out.length; i++) out[i] = Identifier.of(namespace, (String) names.get(i));
    return out;
  }

  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    List names = IcebergPyRequests.tablesList(handle, levels(namespace)).names();
    Identifier[] out = new Identifier[names.size()];
    for (int i = 0; i < out.length; i++) out[i] = Identifier.of(namespace, (String) names.get(i));
    return out;
  }
  public Table loadTable(Identifier identifier) throws NoSuchTableException {
    Table made = IcebergPyNewSink.made(this, identifier);
    if (made != null) return made;
    scala.Option branch = IcebergPySessions.active().conf().getOption("spark.wap.branch");
    try {
      return load(identifier, null, null, branch.isDefined() ? (String) branch.get() : null);
    } catch (NoSuchTableException e) {
      Table view = IcebergPyViews.load(name, handle, identifier);
      if (view == null) throw e;
      return view;
    }
  }
  public Table loadTable(Identifier identifier, String version) throws NoSuchTableException {
    return load(identifier, version, null, null);
  }
  public Table loadTable(Identifier identifier, long timestampMicros) throws NoSuchTableException {
    return load(identifier, null, Long.valueOf(timestampMicros), null);
  }
  private Table load(Identifier identifier, String version, Long timestamp, String branch)
      throws NoSuchTableException {
    IcebergPyTableDefinition table = IcebergPyRequests.tableLoad(
        handle, levels(identifier), identifier.name(), version, timestamp, branch);
    return IcebergPyAutoCdcTarget.isAsked() ? new IcebergPyAutoCdcTarget(table)
                                            : new IcebergPyTable(table);
  }
  /** Return the handle of a table as it is now. */
  String handleOf(Identifier identifier) throws NoSuchTableException {
    return IcebergPyRequests
        .tableLoad(handle, levels(identifier), identifier.name(), null, null, null)
        .handle();
  }
  /** Return the change feed of a table; arguments and result are classes of Spark 4.2 and newer. */
  Object changelog(Identifier identifier, Object context, CaseInsensitiveStringMap options)
      throws NoSuchTableException {
    return IcebergPyInternals.changelog(
        new Object[] {handle, levels(identifier), identifier.name(), context, options});
  }
  public boolean tableExists(Identifier identifier) {
    if (IcebergPyRequests.tableExists(handle, levels(identifier), identifier.name()).exists())
      return true;
    if (!IcebergPyNewSink.isAsked()) return false;
    try {
      // a branch, which `toTable` would create otherwise
      handleOf(identifier);
      return true;
    } catch (NoSuchTableException e) {
      return false;
    }
  }
  public void invalidateTable(Identifier identifier) {
    IcebergPyRequests.tableInvalidate(handle, levels(identifier), identifier.name());
  }

  public Table createTable(Identifier identifier, Column[] columns, Transform[] partitions,
      Map properties) throws TableAlreadyExistsException, NoSuchNamespaceException {
    if (IcebergPyNewSink.isAsked())
      return new IcebergPyNewSink(
          IcebergPyRequests.tableStage(handle, levels(identifier), identifier.name(),
              schema(columns), defaults(columns), describe(partitions), properties, "create"),
          this, handle, identifier);
    return new IcebergPyTable(IcebergPyRequests.tableCreate(handle, levels(identifier),
        identifier.name(), schema(columns), defaults(columns), describe(partitions), properties));
  }
  /**
   * Refuse what only CREATE TABLE checks before it asks the catalog: LIKE would drop it silently.
   */
  static void checkPlain(Identifier identifier, Column[] columns, Object[] constraints) {
    String what = constraints != null && constraints.length > 0 ? "a constraint" : null;
    for (int i = 0; i < columns.length; i++)
      if (columns[i].generationExpression() != null || columns[i].identityColumnSpec() != null)
        what = "the generated or identity column '" + columns[i].name() + "'";
    if (what != null)
      throw new IcebergPyUnsupportedFeatureException("table " + identifier + ": the source of LIKE "
          + "has " + what + ", which Iceberg tables lack; write CREATE TABLE with plain columns");
  }
  private static String schema(Column[] columns) {
    StructType schema = new StructType();
    for (int i = 0; i < columns.length; i++) {
      schema = schema.add(columns[i].name(), columns[i].dataType(), columns[i].nullable());
      if (columns[i].comment() != null) {
        StructField[] fields = schema.fields();
        fields[i] = fields[i].withComment(columns[i].comment());
        schema = new StructType(fields);
      }
    }
    return schema.json();
  }
  private static List defaults(Column[] columns) {
    List defaults = new ArrayList();
    for (int i = 0; i < columns.length; i++)
      defaults.add(defaultOf(IcebergPyInternals.defaultText(columns[i].defaultValue())));
    return defaults;
  }
  private static List describe(Transform[] partitions) {
    List transforms = new ArrayList();
    for (int i = 0; i < partitions.length; i++) transforms.add(partitions[i].describe());
    return transforms;
  }
  public StagedTable stageCreate(Identifier identifier, Column[] columns, Transform[] partitions,
      Map properties) throws TableAlreadyExistsException, NoSuchNamespaceException {
    return stage("create", identifier, columns, partitions, properties);
  }
  public StagedTable stageReplace(Identifier identifier, Column[] columns, Transform[] partitions,
      Map properties) throws NoSuchTableException, NoSuchNamespaceException {
    return stage("replace", identifier, columns, partitions, properties);
  }
  public StagedTable stageCreateOrReplace(Identifier identifier, Column[] columns,
      Transform[] partitions, Map properties) throws NoSuchNamespaceException {
    return stage("create or replace", identifier, columns, partitions, properties);
  }
  private StagedTable stage(String mode, Identifier identifier, Column[] columns,
      Transform[] partitions, Map properties) {
    if (isOfQuery()) columns = withoutDefaults(columns);
    return new IcebergPyStagedTable(
        IcebergPyRequests.tableStage(handle, levels(identifier), identifier.name(), schema(columns),
            defaults(columns), describe(partitions), properties, mode),
        handle);
  }
  /** Return whether the columns come from a query, which only the stack of callers shows. */
  private static boolean isOfQuery() {
    StackTraceElement[] callers = Thread.currentThread().getStackTrace();
    for (int i = 0; i < callers.length; i++)
      if (callers[i].getClassName().endsWith("TableAsSelectExec")) return true;
    return false;
  }
  /**
   * Remove the defaults: a query's columns have the defaults of the source tables, but the new
   * table gets no defaults.
   */
  private static Column[] withoutDefaults(Column[] columns) {
    Column[] out = new Column[columns.length];
    for (int i = 0; i < out.length; i++)
      out[i] = Column.create(columns[i].name(), columns[i].dataType(), columns[i].nullable(),
          columns[i].comment(), columns[i].metadataInJSON());
    return out;
  }
  public Table createTable(Identifier identifier, StructType schema, Transform[] partitions,
      Map properties) throws TableAlreadyExistsException, NoSuchNamespaceException {
    Column[] columns = new Column[schema.fields().length];
    for (int i = 0; i < columns.length; i++) {
      StructField f = schema.fields()[i];
      columns[i] = Column.create(f.name(), f.dataType(), f.nullable());
    }
    return createTable(identifier, columns, partitions, properties);
  }
  public Table alterTable(Identifier identifier, TableChange[] changes)
      throws NoSuchTableException {
    List messages = new ArrayList();
    for (int i = 0; i < changes.length; i++) messages.add(change(changes[i]));
    return new IcebergPyTable(IcebergPyRequests.tableAlter(handle, levels(identifier),
        identifier.name(), messages, SQLConf.get().caseSensitiveAnalysis()));
  }

  /** Describe a default by its SQL text and, for a literal, its value; null if there is none. */
  private static Map defaultOf(String sql) {
    if (sql == null || sql.trim().isEmpty()) return null;
    Expression expression;
    try {
      expression = (Expression) (Object) IcebergPySessions.active()
                       .sessionState()
                       .sqlParser()
                       .parseExpression(sql);
    } catch (Exception e) {
      Platform.throwException(e);
      return null;
    }
    // our own columns show texts and fractions as casts, which LIKE hands back
    if (constantIn(expression) && ((Expression) (Object) expression).resolved())
      expression = Literal$.MODULE$.create(((Expression) (Object) expression).eval(null),
          ((Expression) (Object) expression).dataType());
    Map value = null;
    if (expression instanceof Literal)
      value = IcebergPyFilters.literal(
          ((Literal) expression).value(), ((Literal) expression).dataType());
    return IcebergPyRequests.columnDefault(sql, value);
  }
  private static boolean constantIn(Expression e) {
    Object input = e instanceof UnaryMinus ? (Object) ((UnaryMinus) e).child()
        : e instanceof Cast                ? (Object) ((Cast) e).child()
                                           : null;
    return input instanceof Literal;
  }
  /** Return the name of the column before this position; empty for FIRST, null without one. */
  private static String position(TableChange.ColumnPosition position) {
    return position == null                     ? null
        : position instanceof TableChange.After ? ((TableChange.After) position).column()
                                                : "";
  }

  private static Map change(TableChange c) {
    if (c instanceof TableChange.SetProperty)
      return IcebergPyRequests.setProperty(
          ((TableChange.SetProperty) c).property(), ((TableChange.SetProperty) c).value());
    if (c instanceof TableChange.RemoveProperty)
      return IcebergPyRequests.removeProperty(((TableChange.RemoveProperty) c).property());
    if (!(c instanceof TableChange.ColumnChange))
      return IcebergPyRequests.otherChange(c.getClass().getSimpleName());
    List path = IcebergPyBridge.list(((TableChange.ColumnChange) c).fieldNames());
    if (c instanceof TableChange.AddColumn) {
      TableChange.AddColumn a = (TableChange.AddColumn) c;
      return IcebergPyRequests.addColumn(path, a.dataType().json(), a.isNullable(), a.comment(),
          position(a.position()), defaultOf(IcebergPyInternals.defaultText(a.defaultValue())));
    }
    if (c instanceof TableChange.DeleteColumn)
      return IcebergPyRequests.deleteColumn(
          path, ((TableChange.DeleteColumn) c).ifExists().booleanValue());
    if (c instanceof TableChange.RenameColumn)
      return IcebergPyRequests.renameColumn(path, ((TableChange.RenameColumn) c).newName());
    if (c instanceof TableChange.UpdateColumnType)
      return IcebergPyRequests.updateType(
          path, ((TableChange.UpdateColumnType) c).newDataType().json());
    if (c instanceof TableChange.UpdateColumnNullability)
      return IcebergPyRequests.updateNullability(
          path, ((TableChange.UpdateColumnNullability) c).nullable());
    if (c instanceof TableChange.UpdateColumnComment)
      return IcebergPyRequests.updateComment(
          path, ((TableChange.UpdateColumnComment) c).newComment());
    if (c instanceof TableChange.UpdateColumnPosition)
      return IcebergPyRequests.updatePosition(
          path, position(((TableChange.UpdateColumnPosition) c).position()));
    if (c instanceof TableChange.UpdateColumnDefaultValue)
      return IcebergPyRequests.updateDefault(
          path, defaultOf(((TableChange.UpdateColumnDefaultValue) c).newDefaultValue()));
    return IcebergPyRequests.otherChange(c.getClass().getSimpleName());
  }

  public boolean dropTable(Identifier identifier) { return drop(identifier, false); }
  public boolean purgeTable(Identifier identifier) { return drop(identifier, true); }
  private boolean drop(Identifier identifier, boolean purge) {
    return IcebergPyRequests.tableDrop(handle, levels(identifier), identifier.name(), purge)
        .existed();
  }
  public void renameTable(Identifier from, Identifier to)
      throws NoSuchTableException, TableAlreadyExistsException {
    IcebergPyRequests.tableRename(handle, levels(from), from.name(), levels(to), to.name());
  }

  public String[][] listNamespaces() throws NoSuchNamespaceException {
    return namespaces(new String[0]);
  }
  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    return namespaces(namespace);
  }
  private String[][] namespaces(String[] parent) {
    List namespaces = IcebergPyRequests.namespacesList(handle, levels(parent)).namespaces();
    String[][] out = new String[namespaces.size()][];
    for (int i = 0; i < out.length; i++) out[i] = strings((List) namespaces.get(i));
    return out;
  }
  public boolean namespaceExists(String[] namespace) {
    return IcebergPyRequests.namespaceExists(handle, levels(namespace)).exists();
  }
  public Map loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    return IcebergPyRequests.namespaceLoad(handle, levels(namespace)).properties();
  }
  public void createNamespace(String[] namespace, Map properties)
      throws NamespaceAlreadyExistsException {
    IcebergPyRequests.namespaceCreate(handle, levels(namespace), properties);
  }
  public void alterNamespace(String[] namespace, NamespaceChange[] changes)
      throws NoSuchNamespaceException {
    Map set = new HashMap();
    List removals = new ArrayList();
    for (int i = 0; i < changes.length; i++) {
      if (changes[i] instanceof NamespaceChange.SetProperty)
        set.put(((NamespaceChange.SetProperty) changes[i]).property(),
            ((NamespaceChange.SetProperty) changes[i]).value());
      else
        removals.add(((NamespaceChange.RemoveProperty) changes[i]).property());
    }
    if (set.containsKey(IcebergPyViewChanges.STATEMENT))
      IcebergPyViewChanges.run(name, handle, levels(namespace), set);
    else
      IcebergPyRequests.namespaceAlter(handle, levels(namespace), set, removals);
  }
  /** Return the rows of a statement that describes a view, or null if the name is not a view's. */
  List describeView(List namespace, String view, String statement, String property) {
    String[] levels = (String[]) namespace.toArray(new String[0]);
    try {
      load(Identifier.of(levels, view), null, null, null);
      return null;
    } catch (NoSuchTableException e) {
      IcebergPyViewDescription description =
          IcebergPyRequests.viewDescribe(handle, namespace, view, statement, property);
      return description.exists() ? description.rows() : null;
    }
  }
  /** Return a view, or null if there is none of this name. */
  V1Table view(Identifier identifier) { return IcebergPyViews.described(name, handle, identifier); }
  /** Return the names of the views in a namespace. */
  List views(List namespace) { return IcebergPyRequests.viewsList(handle, namespace).names(); }
  public boolean dropNamespace(String[] namespace, boolean cascade)
      throws NoSuchNamespaceException, NonEmptyNamespaceException {
    IcebergPyRequests.namespaceDrop(handle, levels(namespace), cascade);
    return true;
  }
}
