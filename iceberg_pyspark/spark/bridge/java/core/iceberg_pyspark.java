import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.UnaryMinus;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;

/** The class that `spark.sql.catalog.<name> = iceberg_pyspark` names. */
public class iceberg_pyspark implements StagingTableCatalog, SupportsNamespaces, FunctionCatalog {
  private String name;
  private String handle;
  /** Held: see `IcebergPyHandle`. */
  private IcebergPyHandle session;

  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    this.session = IcebergPySessions.handleOf(org.apache.spark.sql.classic.SparkSession.active());
    Map answer = IcebergPyBridge.askMap("catalog.open",
        IcebergPyBridge.arguments(new Object[] {"session", session.text, "name", name, "options",
            new HashMap(options.asCaseSensitiveMap())}));
    this.handle = (String) answer.get("handle");
  }
  public String name() { return name; }
  public String[] defaultNamespace() { return new String[] {"default"}; }

  private Map on(Identifier identifier) {
    return IcebergPyBridge.arguments(new Object[] {"catalog", handle, "namespace",
        IcebergPyBridge.list(identifier.namespace()), "name", identifier.name()});
  }
  private Map on(String[] namespace) {
    return IcebergPyBridge.arguments(
        new Object[] {"catalog", handle, "namespace", IcebergPyBridge.list(namespace)});
  }
  private static Map with(Map map, String key, Object value) {
    map.put(key, value);
    return map;
  }

  public Set capabilities() {
    return new HashSet(Arrays.asList(
        new TableCatalogCapability[] {TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE}));
  }

  public Identifier[] listFunctions(String[] namespace) {
    Identifier[] out = new Identifier[hasFunctions(namespace) ? IcebergPyFunction.NAMES.length : 0];
    for (int i = 0; i < out.length; i++)
      out[i] = Identifier.of(namespace, IcebergPyFunction.NAMES[i]);
    return out;
  }
  public UnboundFunction loadFunction(Identifier identifier) {
    String function = identifier.name().toLowerCase(java.util.Locale.ROOT);
    if (!hasFunctions(identifier.namespace())
        || !Arrays.asList(IcebergPyFunction.NAMES).contains(function))
      Platform.throwException(new NoSuchFunctionException(identifier));
    return new IcebergPyFunction(function);
  }
  /** Spark looks for those that tables are partitioned by in no namespace. */
  private static boolean hasFunctions(String[] namespace) {
    return namespace.length == 0
        || namespace.length == 1 && namespace[0].equalsIgnoreCase("system");
  }

  public Identifier[] listTables(String[] namespace) {
    Map answer = IcebergPyBridge.askMap("tables.list", on(namespace));
    List names = (List) answer.get("names");
    Identifier[] out = new Identifier[names.size()];
    for (int i = 0; i < out.length; i++) out[i] = Identifier.of(namespace, (String) names.get(i));
    return out;
  }
  public Table loadTable(Identifier identifier) {
    scala.Option branch = ((org.apache.spark.sql.classic.SparkSession)
                               org.apache.spark.sql.classic.SparkSession.active())
                              .conf()
                              .getOption("spark.wap.branch");
    return new IcebergPyTable(IcebergPyBridge.askMap("table.load",
        with(on(identifier), "wap_branch", branch.isDefined() ? branch.get() : null)));
  }
  public Table loadTable(Identifier identifier, String version) {
    return new IcebergPyTable(
        IcebergPyBridge.askMap("table.load", with(on(identifier), "version", version)));
  }
  public Table loadTable(Identifier identifier, long timestampMicros) {
    return new IcebergPyTable(IcebergPyBridge.askMap(
        "table.load", with(on(identifier), "timestamp_us", Long.valueOf(timestampMicros))));
  }
  public boolean tableExists(Identifier identifier) {
    return IcebergPyBridge.askMap("table.exists", on(identifier))
        .get("exists")
        .equals(Boolean.TRUE);
  }
  public void invalidateTable(Identifier identifier) {
    IcebergPyBridge.askMap("table.invalidate", on(identifier));
  }

  public Table createTable(
      Identifier identifier, Column[] columns, Transform[] partitions, Map properties) {
    return new IcebergPyTable(IcebergPyBridge.askMap(
        "table.create", described(identifier, columns, partitions, properties)));
  }
  private Map described(
      Identifier identifier, Column[] columns, Transform[] partitions, Map properties) {
    StructType schema = new StructType();
    for (int i = 0; i < columns.length; i++) {
      schema = schema.add(columns[i].name(), columns[i].dataType(), columns[i].nullable());
      if (columns[i].comment() != null) {
        StructField[] fields = schema.fields();
        fields[i] = fields[i].withComment(columns[i].comment());
        schema = new StructType(fields);
      }
    }
    List defaults = new ArrayList();
    for (int i = 0; i < columns.length; i++)
      defaults.add(defaultOf(IcebergPyInternals.defaultText(columns[i].defaultValue())));
    List transforms = new ArrayList();
    for (int i = 0; i < partitions.length; i++) transforms.add(partitions[i].describe());
    return with(
        with(with(with(on(identifier), "schema", schema.json()), "partitioned_by", transforms),
            "properties", properties),
        "defaults", defaults);
  }
  public StagedTable stageCreate(
      Identifier identifier, Column[] columns, Transform[] partitions, Map properties) {
    return staged("create", identifier, columns, partitions, properties);
  }
  public StagedTable stageReplace(
      Identifier identifier, Column[] columns, Transform[] partitions, Map properties) {
    return staged("replace", identifier, columns, partitions, properties);
  }
  public StagedTable stageCreateOrReplace(
      Identifier identifier, Column[] columns, Transform[] partitions, Map properties) {
    return staged("create or replace", identifier, columns, partitions, properties);
  }
  private StagedTable staged(String mode, Identifier identifier, Column[] columns,
      Transform[] partitions, Map properties) {
    if (isOfQuery()) columns = withoutDefaults(columns);
    return new IcebergPyStagedTable(
        IcebergPyBridge.askMap("table.stage",
            with(described(identifier, columns, partitions, properties), "mode", mode)),
        handle);
  }
  /** Whether a query gives the columns: nothing in them tells, only who asks does. */
  private static boolean isOfQuery() {
    StackTraceElement[] callers = Thread.currentThread().getStackTrace();
    for (int i = 0; i < callers.length; i++)
      if (callers[i].getClassName().endsWith("TableAsSelectExec")) return true;
    return false;
  }
  /** The columns of a query bring the defaults of the tables it reads: the new table has none. */
  private static Column[] withoutDefaults(Column[] columns) {
    Column[] out = new Column[columns.length];
    for (int i = 0; i < out.length; i++)
      out[i] = Column.create(columns[i].name(), columns[i].dataType(), columns[i].nullable(),
          columns[i].comment(), columns[i].metadataInJSON());
    return out;
  }
  public Table createTable(
      Identifier identifier, StructType schema, Transform[] partitions, Map properties) {
    Column[] columns = new Column[schema.fields().length];
    for (int i = 0; i < columns.length; i++) {
      StructField f = schema.fields()[i];
      columns[i] = Column.create(f.name(), f.dataType(), f.nullable());
    }
    return createTable(identifier, columns, partitions, properties);
  }
  public Table alterTable(Identifier identifier, TableChange[] changes) {
    List described = new ArrayList();
    for (int i = 0; i < changes.length; i++) described.add(change(changes[i]));
    return new IcebergPyTable(
        IcebergPyBridge.askMap("table.alter", with(on(identifier), "changes", described)));
  }

  /** A default's text and, where it is a literal, its value; no text means no default. */
  private static Map defaultOf(String sql) {
    if (sql == null || sql.trim().isEmpty()) return null;
    Map map = IcebergPyBridge.arguments(new Object[] {"sql", sql});
    Expression parsed;
    try {
      parsed = (Expression) (Object) ((org.apache.spark.sql.classic.SparkSession)
                                          org.apache.spark.sql.classic.SparkSession.active())
                   .sessionState()
                   .sqlParser()
                   .parseExpression(sql);
    } catch (Exception e) {
      Platform.throwException(e);
      return null;
    }
    if (parsed instanceof UnaryMinus
        && ((Expression) (Object) ((UnaryMinus) parsed).child()) instanceof Literal)
      parsed = Literal$.MODULE$.create(
          ((Expression) (Object) parsed).eval(null), ((Expression) (Object) parsed).dataType());
    if (parsed instanceof Literal)
      map.put("value",
          IcebergPyFilters.literal(((Literal) parsed).value(), ((Literal) parsed).dataType()));
    return map;
  }
  /** FIRST is the empty name. */
  private static String position(TableChange.ColumnPosition position) {
    return position == null                     ? null
        : position instanceof TableChange.After ? ((TableChange.After) position).column()
                                                : "";
  }

  private static Map change(TableChange c) {
    if (c instanceof TableChange.SetProperty)
      return IcebergPyBridge.arguments(
          new Object[] {"op", "set_property", "key", ((TableChange.SetProperty) c).property(),
              "value", ((TableChange.SetProperty) c).value()});
    if (c instanceof TableChange.RemoveProperty)
      return IcebergPyBridge.arguments(new Object[] {
          "op", "remove_property", "key", ((TableChange.RemoveProperty) c).property()});
    if (c instanceof TableChange.AddColumn) {
      TableChange.AddColumn a = (TableChange.AddColumn) c;
      return IcebergPyBridge.arguments(
          new Object[] {"op", "add_column", "path", IcebergPyBridge.list(a.fieldNames()), "type",
              a.dataType().json(), "nullable", Boolean.valueOf(a.isNullable()), "comment",
              a.comment(), "position", position(a.position()), "default",
              defaultOf(IcebergPyInternals.defaultText(a.defaultValue()))});
    }
    if (c instanceof TableChange.DeleteColumn)
      return IcebergPyBridge.arguments(new Object[] {"op", "delete_column", "path",
          IcebergPyBridge.list(((TableChange.DeleteColumn) c).fieldNames()), "if_exists",
          ((TableChange.DeleteColumn) c).ifExists()});
    if (c instanceof TableChange.RenameColumn)
      return IcebergPyBridge.arguments(new Object[] {"op", "rename_column", "path",
          IcebergPyBridge.list(((TableChange.RenameColumn) c).fieldNames()), "name",
          ((TableChange.RenameColumn) c).newName()});
    if (c instanceof TableChange.UpdateColumnType)
      return IcebergPyBridge.arguments(new Object[] {"op", "update_type", "path",
          IcebergPyBridge.list(((TableChange.UpdateColumnType) c).fieldNames()), "type",
          ((TableChange.UpdateColumnType) c).newDataType().json()});
    if (c instanceof TableChange.UpdateColumnNullability)
      return IcebergPyBridge.arguments(new Object[] {"op", "update_nullability", "path",
          IcebergPyBridge.list(((TableChange.UpdateColumnNullability) c).fieldNames()), "nullable",
          Boolean.valueOf(((TableChange.UpdateColumnNullability) c).nullable())});
    if (c instanceof TableChange.UpdateColumnComment)
      return IcebergPyBridge.arguments(new Object[] {"op", "update_comment", "path",
          IcebergPyBridge.list(((TableChange.UpdateColumnComment) c).fieldNames()), "comment",
          ((TableChange.UpdateColumnComment) c).newComment()});
    if (c instanceof TableChange.UpdateColumnPosition)
      return IcebergPyBridge.arguments(new Object[] {"op", "update_position", "path",
          IcebergPyBridge.list(((TableChange.UpdateColumnPosition) c).fieldNames()), "position",
          position(((TableChange.UpdateColumnPosition) c).position())});
    if (c instanceof TableChange.UpdateColumnDefaultValue)
      return IcebergPyBridge.arguments(new Object[] {"op", "update_default", "path",
          IcebergPyBridge.list(((TableChange.UpdateColumnDefaultValue) c).fieldNames()), "default",
          defaultOf(((TableChange.UpdateColumnDefaultValue) c).newDefaultValue())});
    return IcebergPyBridge.arguments(
        new Object[] {"op", "unknown", "class", c.getClass().getSimpleName()});
  }

  public boolean dropTable(Identifier identifier) {
    return IcebergPyBridge.askMap("table.drop", with(on(identifier), "purge", Boolean.FALSE))
        .get("dropped")
        .equals(Boolean.TRUE);
  }
  public boolean purgeTable(Identifier identifier) {
    return IcebergPyBridge.askMap("table.drop", with(on(identifier), "purge", Boolean.TRUE))
        .get("dropped")
        .equals(Boolean.TRUE);
  }
  public void renameTable(Identifier from, Identifier to) {
    IcebergPyBridge.askMap("table.rename",
        with(with(on(from), "to_namespace", IcebergPyBridge.list(to.namespace())), "to_name",
            to.name()));
  }

  public String[][] listNamespaces() { return namespaces(new String[0]); }
  public String[][] listNamespaces(String[] namespace) { return namespaces(namespace); }
  private String[][] namespaces(String[] parent) {
    Map answer = IcebergPyBridge.askMap("namespaces.list", on(parent));
    List found = (List) answer.get("namespaces");
    String[][] out = new String[found.size()][];
    for (int i = 0; i < out.length; i++) {
      List levels = (List) found.get(i);
      out[i] = (String[]) levels.toArray(new String[levels.size()]);
    }
    return out;
  }
  public boolean namespaceExists(String[] namespace) {
    return IcebergPyBridge.askMap("namespace.exists", on(namespace))
        .get("exists")
        .equals(Boolean.TRUE);
  }
  public Map loadNamespaceMetadata(String[] namespace) {
    return IcebergPyBridge.askMap("namespace.load", on(namespace));
  }
  public void createNamespace(String[] namespace, Map properties) {
    IcebergPyBridge.askMap("namespace.create", with(on(namespace), "properties", properties));
  }
  public void alterNamespace(String[] namespace, NamespaceChange[] changes) {
    Map set = new HashMap();
    List removed = new ArrayList();
    for (int i = 0; i < changes.length; i++) {
      if (changes[i] instanceof NamespaceChange.SetProperty)
        set.put(((NamespaceChange.SetProperty) changes[i]).property(),
            ((NamespaceChange.SetProperty) changes[i]).value());
      else
        removed.add(((NamespaceChange.RemoveProperty) changes[i]).property());
    }
    IcebergPyBridge.askMap(
        "namespace.alter", with(with(on(namespace), "set", set), "removed", removed));
  }
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    IcebergPyBridge.askMap(
        "namespace.drop", with(on(namespace), "cascade", Boolean.valueOf(cascade)));
    return true;
  }
}
