// The bridge between Spark's JVM and Python: it passes questions on and holds no Iceberg rule.
// Compiled by the Janino inside Spark when a session is installed (compiler.py), hence raw types, casts and no lambdas.

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.InterpretedPredicate;
import org.apache.spark.sql.catalyst.expressions.IsNaN;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.catalyst.expressions.StartsWith;
import org.apache.spark.sql.catalyst.expressions.UnaryMinus;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.BROADCAST$;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory$;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.BooleanType$;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Questions to Python: an operation and its arguments as JSON, or JVM objects where a plan is asked for. */
public class IcebergPyBridge {
  static volatile IcebergPyCallback python;
  static final ObjectMapper JSON = new ObjectMapper();

  /** Ask, and raise what Python raised: values pass; a text "error", class, message does not, nor what a job of Spark's threw. */
  static Object ask(String operation, Object argument) {
    Object answer = answered(operation, argument);
    if (answer instanceof String && ((String) answer).startsWith("error\n")) raise((String) answer, new HashMap());
    if (answer instanceof Throwable) Platform.throwException((Throwable) answer);
    return answer;
  }

  static String json(Map argument) {
    try { return JSON.writeValueAsString(argument); }
    catch (com.fasterxml.jackson.core.JsonProcessingException e) { throw new IllegalStateException(e); }
  }

  static Map askMap(String operation, Map argument) {
    try {
      String answer = (String) answered(operation, JSON.writeValueAsString(argument));
      if (answer != null && answer.startsWith("error\n")) raise(answer, argument);
      return answer == null ? null : (Map) JSON.readValue(answer, Map.class);
    } catch (com.fasterxml.jackson.core.JsonProcessingException e) { throw new IllegalStateException(e); }
  }

  private static Object answered(String operation, Object argument) {
    IcebergPyCallback answering = python;
    if (answering == null) throw new IllegalStateException("iceberg_pyspark is not installed in this process: call iceberg_pyspark.install(spark)");
    return answering.ask(operation, argument);
  }

  /** An error of Python's as Spark's own class of it, or with the message that Python gave. */
  static void raise(String answer, Map question) {
    String[] parts = answer.split("\n", 3);
    String kind = parts[1];
    String[] namespace = strings(question.get("namespace"));
    String name = (String) question.get("name");
    if (kind.equals("NoSuchTableError") && name != null) Platform.throwException(new NoSuchTableException(Identifier.of(namespace, name)));
    if (kind.equals("TableAlreadyExistsError") && name != null) {
      boolean renamed = question.containsKey("to_name");
      Platform.throwException(new org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException(renamed ? Identifier.of(strings(question.get("to_namespace")), (String) question.get("to_name")) : Identifier.of(namespace, name)));
    }
    if (kind.equals("NoSuchNamespaceError")) Platform.throwException(new NoSuchNamespaceException(question.containsKey("to_name") ? strings(question.get("to_namespace")) : namespace));
    if (kind.equals("NamespaceAlreadyExistsError")) Platform.throwException(new org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException(namespace));
    if (kind.equals("NamespaceNotEmptyError")) Platform.throwException(new org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException(namespace));
    if (kind.equals("InvalidRequestError") || kind.equals("NoSuchSnapshotError")) throw new IcebergPyInvalid(parts[2]);
    if (kind.equals("UnsupportedFeatureError")) throw new IcebergPyUnsupported(parts[2]);
    Platform.throwException(new org.apache.spark.sql.execution.QueryExecutionException(kind.isEmpty() ? parts[2] : parts[2] + "\n(iceberg_pyspark.errors." + kind + ")", null));
  }

  private static String[] strings(Object list) {
    if (list == null) return new String[0];
    return (String[]) ((List) list).toArray(new String[((List) list).size()]);
  }

  static Map arguments(Object[] pairs) {
    Map map = new LinkedHashMap();
    for (int i = 0; i < pairs.length; i += 2) map.put(pairs[i], pairs[i + 1]);
    return map;
  }

  private static final Map HANDLES = new WeakHashMap();
  private static final java.security.SecureRandom RANDOM = new java.security.SecureRandom();

  /** The handle of the session that asks; Python may ask for the session by it. */
  static String session() { return handleOf(org.apache.spark.sql.classic.SparkSession.active()); }
  /** Of its own and nowhere else: the id that Spark gives a session is in job tags, logs and events. */
  static String handleOf(Object session) {
    synchronized (HANDLES) {
      String handle = (String) HANDLES.get(session);
      if (handle == null) {
        byte[] bytes = new byte[16]; RANDOM.nextBytes(bytes);
        handle = java.util.HexFormat.of().formatHex(bytes);
        HANDLES.put(session, handle);
      }
      return handle;
    }
  }
  static Object sessionNamed(String handle) {
    synchronized (HANDLES) {
      Iterator all = HANDLES.entrySet().iterator();
      while (all.hasNext()) { Map.Entry one = (Map.Entry) all.next(); if (one.getValue().equals(handle)) return one.getKey(); }
      return null;
    }
  }

  static scala.collection.immutable.Seq seq(List list) { return (scala.collection.immutable.Seq) scala.jdk.javaapi.CollectionConverters.asScala(list).toSeq(); }

  static List list(Object[] array) { return new ArrayList(Arrays.asList(array)); }
}

/** As Spark's own throwables, so that ALTER TABLE does not wrap them. */
class IcebergPyInvalid extends IllegalArgumentException implements org.apache.spark.SparkThrowable {
  IcebergPyInvalid(String message) { super(message); }
  public String getCondition() { return null; }
}

class IcebergPyUnsupported extends UnsupportedOperationException implements org.apache.spark.SparkThrowable {
  IcebergPyUnsupported(String message) { super(message); }
  public String getCondition() { return null; }
}

/** The class that `spark.sql.catalog.<name> = iceberg_pyspark` names. */
public class iceberg_pyspark implements StagingTableCatalog, SupportsNamespaces {
  private String name;
  private String handle;

  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    Map answer = IcebergPyBridge.askMap("catalog.open", IcebergPyBridge.arguments(new Object[] {"session", IcebergPyBridge.session(), "name", name, "options", new HashMap(options.asCaseSensitiveMap())}));
    this.handle = (String) answer.get("handle");
  }
  public String name() { return name; }
  public String[] defaultNamespace() { return new String[] {"default"}; }

  private Map on(Identifier identifier) { return IcebergPyBridge.arguments(new Object[] {"catalog", handle, "namespace", IcebergPyBridge.list(identifier.namespace()), "name", identifier.name()}); }
  private Map on(String[] namespace) { return IcebergPyBridge.arguments(new Object[] {"catalog", handle, "namespace", IcebergPyBridge.list(namespace)}); }
  private static Map with(Map map, String key, Object value) { map.put(key, value); return map; }


  public Set capabilities() { return new HashSet(Arrays.asList(new TableCatalogCapability[] {TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE})); }

  public Identifier[] listTables(String[] namespace) {
    Map answer = IcebergPyBridge.askMap("tables.list", on(namespace));
    List names = (List) answer.get("names");
    Identifier[] out = new Identifier[names.size()];
    for (int i = 0; i < out.length; i++) out[i] = Identifier.of(namespace, (String) names.get(i));
    return out;
  }
  public Table loadTable(Identifier identifier) {
    scala.Option branch = ((org.apache.spark.sql.classic.SparkSession) org.apache.spark.sql.classic.SparkSession.active()).conf().getOption("spark.wap.branch");
    return new IcebergPyTable(IcebergPyBridge.askMap("table.load", with(on(identifier), "wap_branch", branch.isDefined() ? branch.get() : null)));
  }
  public Table loadTable(Identifier identifier, String version) { return new IcebergPyTable(IcebergPyBridge.askMap("table.load", with(on(identifier), "version", version))); }
  public Table loadTable(Identifier identifier, long timestampMicros) { return new IcebergPyTable(IcebergPyBridge.askMap("table.load", with(on(identifier), "timestamp_us", Long.valueOf(timestampMicros)))); }
  public boolean tableExists(Identifier identifier) { return IcebergPyBridge.askMap("table.exists", on(identifier)).get("exists").equals(Boolean.TRUE); }
  public void invalidateTable(Identifier identifier) { IcebergPyBridge.askMap("table.invalidate", on(identifier)); }

  public Table createTable(Identifier identifier, Column[] columns, Transform[] partitions, Map properties) {
    return new IcebergPyTable(IcebergPyBridge.askMap("table.create", described(identifier, columns, partitions, properties)));
  }
  private Map described(Identifier identifier, Column[] columns, Transform[] partitions, Map properties) {
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
    for (int i = 0; i < columns.length; i++) defaults.add(defaultOf(sql(columns[i].defaultValue())));
    List transforms = new ArrayList();
    for (int i = 0; i < partitions.length; i++) transforms.add(partitions[i].describe());
    return with(with(with(with(on(identifier), "schema", schema.json()), "partitioned_by", transforms), "properties", properties), "defaults", defaults);
  }
  public StagedTable stageCreate(Identifier identifier, Column[] columns, Transform[] partitions, Map properties) { return staged("create", identifier, columns, partitions, properties); }
  public StagedTable stageReplace(Identifier identifier, Column[] columns, Transform[] partitions, Map properties) { return staged("replace", identifier, columns, partitions, properties); }
  public StagedTable stageCreateOrReplace(Identifier identifier, Column[] columns, Transform[] partitions, Map properties) { return staged("create or replace", identifier, columns, partitions, properties); }
  private StagedTable staged(String mode, Identifier identifier, Column[] columns, Transform[] partitions, Map properties) {
    return new IcebergPyStagedTable(IcebergPyBridge.askMap("table.stage", with(described(identifier, columns, partitions, properties), "mode", mode)), handle);
  }
  public Table createTable(Identifier identifier, StructType schema, Transform[] partitions, Map properties) {
    Column[] columns = new Column[schema.fields().length];
    for (int i = 0; i < columns.length; i++) { StructField f = schema.fields()[i]; columns[i] = Column.create(f.name(), f.dataType(), f.nullable()); }
    return createTable(identifier, columns, partitions, properties);
  }
  public Table alterTable(Identifier identifier, TableChange[] changes) {
    List described = new ArrayList();
    for (int i = 0; i < changes.length; i++) described.add(change(changes[i]));
    return new IcebergPyTable(IcebergPyBridge.askMap("table.alter", with(on(identifier), "changes", described)));
  }

  /** The text of a default; its class has other parents in every release. */
  private static String sql(Object defaultValue) {
    if (defaultValue == null) return null;
    try {
      java.lang.reflect.Method getSql = defaultValue.getClass().getMethod("getSql", new Class[0]);
      getSql.setAccessible(true);
      return (String) getSql.invoke(defaultValue, new Object[0]);
    } catch (ReflectiveOperationException e) { throw new IllegalStateException(e); }
  }
  /** A default's text and, where it is a literal, its value; no text means no default. */
  private static Map defaultOf(String sql) {
    if (sql == null || sql.trim().isEmpty()) return null;
    Map map = IcebergPyBridge.arguments(new Object[] {"sql", sql});
    Expression parsed;
    try { parsed = (Expression) (Object) ((org.apache.spark.sql.classic.SparkSession) org.apache.spark.sql.classic.SparkSession.active()).sessionState().sqlParser().parseExpression(sql); }
    catch (Exception e) { Platform.throwException(e); return null; }
    if (parsed instanceof UnaryMinus && ((Expression) (Object) ((UnaryMinus) parsed).child()) instanceof Literal) parsed = Literal$.MODULE$.create(((Expression) (Object) parsed).eval(null), ((Expression) (Object) parsed).dataType());
    if (parsed instanceof Literal) map.put("value", IcebergPyFilters.literal(((Literal) parsed).value(), ((Literal) parsed).dataType()));
    return map;
  }
  /** FIRST is the empty name. */
  private static String position(TableChange.ColumnPosition position) { return position == null ? null : position instanceof TableChange.After ? ((TableChange.After) position).column() : ""; }

  private static Map change(TableChange c) {
    if (c instanceof TableChange.SetProperty) return IcebergPyBridge.arguments(new Object[] {"op", "set_property", "key", ((TableChange.SetProperty) c).property(), "value", ((TableChange.SetProperty) c).value()});
    if (c instanceof TableChange.RemoveProperty) return IcebergPyBridge.arguments(new Object[] {"op", "remove_property", "key", ((TableChange.RemoveProperty) c).property()});
    if (c instanceof TableChange.AddColumn) {
      TableChange.AddColumn a = (TableChange.AddColumn) c;
      return IcebergPyBridge.arguments(new Object[] {"op", "add_column", "path", IcebergPyBridge.list(a.fieldNames()), "type", a.dataType().json(), "nullable", Boolean.valueOf(a.isNullable()), "comment", a.comment(), "position", position(a.position()), "default", defaultOf(sql(a.defaultValue()))});
    }
    if (c instanceof TableChange.DeleteColumn) return IcebergPyBridge.arguments(new Object[] {"op", "delete_column", "path", IcebergPyBridge.list(((TableChange.DeleteColumn) c).fieldNames()), "if_exists", ((TableChange.DeleteColumn) c).ifExists()});
    if (c instanceof TableChange.RenameColumn) return IcebergPyBridge.arguments(new Object[] {"op", "rename_column", "path", IcebergPyBridge.list(((TableChange.RenameColumn) c).fieldNames()), "name", ((TableChange.RenameColumn) c).newName()});
    if (c instanceof TableChange.UpdateColumnType) return IcebergPyBridge.arguments(new Object[] {"op", "update_type", "path", IcebergPyBridge.list(((TableChange.UpdateColumnType) c).fieldNames()), "type", ((TableChange.UpdateColumnType) c).newDataType().json()});
    if (c instanceof TableChange.UpdateColumnNullability) return IcebergPyBridge.arguments(new Object[] {"op", "update_nullability", "path", IcebergPyBridge.list(((TableChange.UpdateColumnNullability) c).fieldNames()), "nullable", Boolean.valueOf(((TableChange.UpdateColumnNullability) c).nullable())});
    if (c instanceof TableChange.UpdateColumnComment) return IcebergPyBridge.arguments(new Object[] {"op", "update_comment", "path", IcebergPyBridge.list(((TableChange.UpdateColumnComment) c).fieldNames()), "comment", ((TableChange.UpdateColumnComment) c).newComment()});
    if (c instanceof TableChange.UpdateColumnPosition) return IcebergPyBridge.arguments(new Object[] {"op", "update_position", "path", IcebergPyBridge.list(((TableChange.UpdateColumnPosition) c).fieldNames()), "position", position(((TableChange.UpdateColumnPosition) c).position())});
    if (c instanceof TableChange.UpdateColumnDefaultValue) return IcebergPyBridge.arguments(new Object[] {"op", "update_default", "path", IcebergPyBridge.list(((TableChange.UpdateColumnDefaultValue) c).fieldNames()), "default", defaultOf(((TableChange.UpdateColumnDefaultValue) c).newDefaultValue())});
    return IcebergPyBridge.arguments(new Object[] {"op", "unknown", "class", c.getClass().getSimpleName()});
  }

  public boolean dropTable(Identifier identifier) { return IcebergPyBridge.askMap("table.drop", with(on(identifier), "purge", Boolean.FALSE)).get("dropped").equals(Boolean.TRUE); }
  public boolean purgeTable(Identifier identifier) { return IcebergPyBridge.askMap("table.drop", with(on(identifier), "purge", Boolean.TRUE)).get("dropped").equals(Boolean.TRUE); }
  public void renameTable(Identifier from, Identifier to) {
    IcebergPyBridge.askMap("table.rename", with(with(on(from), "to_namespace", IcebergPyBridge.list(to.namespace())), "to_name", to.name()));
  }

  public String[][] listNamespaces() { return namespaces(new String[0]); }
  public String[][] listNamespaces(String[] namespace) { return namespaces(namespace); }
  private String[][] namespaces(String[] parent) {
    Map answer = IcebergPyBridge.askMap("namespaces.list", on(parent));
    List found = (List) answer.get("namespaces");
    String[][] out = new String[found.size()][];
    for (int i = 0; i < out.length; i++) { List levels = (List) found.get(i); out[i] = (String[]) levels.toArray(new String[levels.size()]); }
    return out;
  }
  public boolean namespaceExists(String[] namespace) { return IcebergPyBridge.askMap("namespace.exists", on(namespace)).get("exists").equals(Boolean.TRUE); }
  public Map loadNamespaceMetadata(String[] namespace) {
    return IcebergPyBridge.askMap("namespace.load", on(namespace));
  }
  public void createNamespace(String[] namespace, Map properties) {
    IcebergPyBridge.askMap("namespace.create", with(on(namespace), "properties", properties));
  }
  public void alterNamespace(String[] namespace, NamespaceChange[] changes) {
    Map set = new HashMap(); List removed = new ArrayList();
    for (int i = 0; i < changes.length; i++) {
      if (changes[i] instanceof NamespaceChange.SetProperty) set.put(((NamespaceChange.SetProperty) changes[i]).property(), ((NamespaceChange.SetProperty) changes[i]).value());
      else removed.add(((NamespaceChange.RemoveProperty) changes[i]).property());
    }
    IcebergPyBridge.askMap("namespace.alter", with(with(on(namespace), "set", set), "removed", removed));
  }
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    IcebergPyBridge.askMap("namespace.drop", with(on(namespace), "cascade", Boolean.valueOf(cascade)));
    return true;
  }
}

/** A table as it was when it was loaded: `handle` names the metadata and snapshot that Python keeps. */
public class IcebergPyTable implements Table, SupportsRead, SupportsMetadataColumns, SupportsWrite, TruncatableTable {
  final String handle;
  private final Map facts;
  private final StructType schema;
  public IcebergPyTable(Map facts) { this.facts = facts; this.handle = (String) facts.get("handle"); this.schema = (StructType) DataType.fromJson((String) facts.get("schema")); }
  public String name() { return (String) facts.get("name"); }
  public String id() { return (String) facts.get("id"); }
  /** Spark loads the table of a reused DataFrame again and takes the newer version. */
  public String version() { return (String) facts.get("version"); }
  public StructType schema() { return schema; }
  public Column[] columns() { return CatalogV2Columns.of(schema); }
  public Map properties() { return (Map) facts.get("properties"); }
  public Transform[] partitioning() {
    List described = (List) facts.get("partitioning");
    Transform[] out = new Transform[described.size()];
    for (int i = 0; i < out.length; i++) {
      List t = (List) described.get(i);
      String kind = (String) t.get(0); String column = (String) t.get(1);
      if (kind.equals("identity")) out[i] = org.apache.spark.sql.connector.expressions.Expressions.identity(column);
      else if (kind.equals("bucket")) out[i] = org.apache.spark.sql.connector.expressions.Expressions.bucket(((Number) t.get(2)).intValue(), new String[] {column});
      else if (kind.equals("years")) out[i] = org.apache.spark.sql.connector.expressions.Expressions.years(column);
      else if (kind.equals("months")) out[i] = org.apache.spark.sql.connector.expressions.Expressions.months(column);
      else if (kind.equals("days")) out[i] = org.apache.spark.sql.connector.expressions.Expressions.days(column);
      else if (kind.equals("hours")) out[i] = org.apache.spark.sql.connector.expressions.Expressions.hours(column);
      else out[i] = org.apache.spark.sql.connector.expressions.Expressions.apply(kind, new org.apache.spark.sql.connector.expressions.Expression[] {org.apache.spark.sql.connector.expressions.Expressions.literal(t.size() > 2 ? t.get(2) : ""), org.apache.spark.sql.connector.expressions.Expressions.column(column)});
    }
    return out;
  }
  public Set capabilities() {
    Set all = new HashSet(Arrays.asList(new TableCapability[] {TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.TRUNCATE, TableCapability.OVERWRITE_BY_FILTER, TableCapability.OVERWRITE_DYNAMIC}));
    if (Boolean.TRUE.equals(facts.get("accept_any_schema"))) all.add(TableCapability.ACCEPT_ANY_SCHEMA);
    if (!"false".equalsIgnoreCase((String) properties().get("write.spark.auto-schema-evolution.enabled"))) all.add(TableCapability.AUTOMATIC_SCHEMA_EVOLUTION);
    return all;
  }
  public org.apache.spark.sql.connector.write.WriteBuilder newWriteBuilder(org.apache.spark.sql.connector.write.LogicalWriteInfo info) { return new IcebergPyWrite(this); }
  public boolean truncateTable() {
    IcebergPyBridge.askMap("table.truncate", IcebergPyCommand.surroundings(IcebergPyBridge.arguments(new Object[] {"handle", handle})));
    return true;
  }
  public MetadataColumn[] metadataColumns() {
    StructType hidden = (StructType) DataType.fromJson((String) facts.get("metadata_columns"));
    MetadataColumn[] out = new MetadataColumn[hidden.fields().length];
    for (int i = 0; i < out.length; i++) out[i] = new IcebergPyMetadataColumn(hidden.fields()[i]);
    return out;
  }
  public boolean canRenameConflictingMetadataColumns() { return true; }
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) { return new IcebergPyScanBuilder(this, options); }
  long sizeInBytes() { return ((Number) facts.get("size_in_bytes")).longValue(); }
  public boolean equals(Object other) { return other instanceof IcebergPyTable && ((IcebergPyTable) other).handle.equals(handle); }
  public int hashCode() { return handle.hashCode(); }
  public String toString() { return name(); }
}

class CatalogV2Columns {
  static Column[] of(StructType schema) {
    Column[] out = new Column[schema.fields().length];
    for (int i = 0; i < out.length; i++) {
      StructField f = schema.fields()[i];
      out[i] = Column.create(f.name(), f.dataType(), f.nullable(), f.getComment().isDefined() ? (String) f.getComment().get() : null, null);
    }
    return out;
  }
}

class IcebergPyMetadataColumn implements MetadataColumn {
  private final StructField field;
  IcebergPyMetadataColumn(StructField field) { this.field = field; }
  public String name() { return field.name(); }
  public DataType dataType() { return field.dataType(); }
  public boolean isNullable() { return field.nullable(); }
}

class IcebergPyScanBuilder implements ScanBuilder, SupportsPushDownRequiredColumns {
  private final IcebergPyTable table; private final CaseInsensitiveStringMap options; private StructType schema;
  IcebergPyScanBuilder(IcebergPyTable table, CaseInsensitiveStringMap options) { this.table = table; this.options = options; this.schema = table.schema(); }
  public void pruneColumns(StructType required) { this.schema = required; }
  public Scan build() { return new IcebergPyScan(table, options, schema); }
}

/** Stands in the optimized plan until `IcebergPyRule` puts the plan Python made in its place. */
public class IcebergPyScan implements Scan, SupportsReportStatistics {
  final IcebergPyTable table; final CaseInsensitiveStringMap options; private final StructType schema;
  public IcebergPyScan(IcebergPyTable table, CaseInsensitiveStringMap options, StructType schema) { this.table = table; this.options = options; this.schema = schema; }
  public StructType readSchema() { return schema; }
  public String description() { return "iceberg-py " + table.name(); }
  public Statistics estimateStatistics() { return new IcebergPyStatistics(table.sizeInBytes()); }
  public boolean equals(Object other) { return other instanceof IcebergPyScan && ((IcebergPyScan) other).table.equals(table) && ((IcebergPyScan) other).schema.equals(schema) && ((IcebergPyScan) other).options.equals(options); }
  public int hashCode() { return table.hashCode(); }
}

class IcebergPyStatistics implements Statistics {
  private final long size;
  IcebergPyStatistics(long size) { this.size = size; }
  public OptionalLong sizeInBytes() { return OptionalLong.of(size); }
  public OptionalLong numRows() { return OptionalLong.empty(); }
}

/** Puts a plan made by Python in the place of every scan of ours, the filter right above it in hand. */
public class IcebergPyRule extends org.apache.spark.sql.catalyst.rules.Rule {
  public IcebergPyRule() { super(); }

  public TreeNode apply(TreeNode plan) { return rewrite((LogicalPlan) plan, null); }

  /** `needed` has the ids of the columns that the plan's parent refers to; null for all. */
  private LogicalPlan rewrite(LogicalPlan plan, Set needed) {
    if (plan instanceof DeleteFromTable || plan instanceof UpdateTable || plan instanceof MergeIntoTable) return plan;
    plan = withSubqueries(plan);
    LogicalPlan below = plan; Expression condition = null;
    while (below instanceof Filter) {
      Expression inner = (Expression) (Object) ((Filter) below).condition();
      condition = condition == null ? inner : new And(inner, condition);
      below = withSubqueries((LogicalPlan) (Object) ((Filter) below).child());
    }
    if (isOurs(below)) {
      LogicalPlan made = replaced((DataSourceV2ScanRelation) below, condition, needed);
      return made == null ? plan : made;
    }
    if (plan instanceof Aggregate) {
      LogicalPlan made = counted((Aggregate) plan);
      if (made != null) return made;
    }
    // Spark's Python data source always gives all columns: what is above it says which are used
    Set used = plan instanceof Project || plan instanceof Aggregate ? ids(plan.references()) : null;
    List children = new ArrayList(); boolean changed = false;
    scala.collection.Iterator it = plan.children().iterator();
    while (it.hasNext()) { LogicalPlan child = (LogicalPlan) it.next(); LogicalPlan next = rewrite(child, used); changed |= next != child; children.add(next); }
    return changed ? (LogicalPlan) plan.withNewChildren(IcebergPyBridge.seq(children)) : plan;
  }

  /** The plan with those in its own expressions rewritten: pruning and Bloom filters that Spark made after it optimized subqueries. */
  private LogicalPlan withSubqueries(LogicalPlan plan) {
    return plan.subqueries().isEmpty() ? plan : (LogicalPlan) (Object) plan.transformExpressions(new IcebergPySubqueries(this));
  }
  LogicalPlan rewritten(LogicalPlan plan) { return rewrite(plan, null); }

  private static Set ids(AttributeSet attributes) {
    Set ids = new HashSet();
    scala.collection.Iterator it = attributes.iterator();
    while (it.hasNext()) ids.add(((Attribute) it.next()).exprId());
    return ids;
  }

  private static boolean isOurs(LogicalPlan plan) {
    if (!(plan instanceof DataSourceV2ScanRelation)) return false;
    Scan scan = ((DataSourceV2ScanRelation) plan).scan();
    return scan instanceof IcebergPyScan || IcebergPySource.isOurs((DataSourceV2ScanRelation) plan);
  }

  /** Which table is meant, of the catalog or of a data source; null where there is none yet. */
  private static Map question(DataSourceV2ScanRelation relation) {
    Map question = IcebergPyBridge.arguments(new Object[] {"session", IcebergPyBridge.session()});
    if (relation.scan() instanceof IcebergPyScan) { question.put("handle", ((IcebergPyScan) relation.scan()).table.handle); return question; }
    byte[] pickled = (byte[]) IcebergPySource.pickled(relation);
    if (pickled == null) return null;
    question.put("source", java.util.Base64.getEncoder().encodeToString(pickled));
    return question;
  }

  /** COUNT(*) of a whole table, as Python knows it from metadata; null for all else. */
  private static LogicalPlan counted(Aggregate plan) {
    if (!plan.groupingExpressions().isEmpty()) return null;
    List aliases = new ArrayList();
    scala.collection.Iterator it = plan.aggregateExpressions().iterator();
    while (it.hasNext()) {
      Object e = it.next();
      if (!(e instanceof Alias) || !isRowCount((Expression) (Object) ((Alias) e).child())) return null;
      aliases.add(e);
    }
    LogicalPlan below = (LogicalPlan) (Object) plan.child();
    while (below instanceof Project) below = (LogicalPlan) (Object) ((Project) below).child();
    if (aliases.isEmpty() || !isOurs(below)) return null;
    Map question = question((DataSourceV2ScanRelation) below);
    Object rows = question == null ? null : IcebergPyBridge.ask("scan.count", IcebergPyBridge.json(question));
    if (rows == null) return null;
    List counts = new ArrayList();
    for (int i = 0; i < aliases.size(); i++) {
      Alias a = (Alias) aliases.get(i);
      counts.add(new Alias((Expression) (Object) Literal$.MODULE$.apply(Long.valueOf((String) rows)), a.name(), a.exprId(), a.qualifier(), scala.Option.empty(), IcebergPyBridge.seq(new ArrayList())));
    }
    return new Project(IcebergPyBridge.seq(counts), new OneRowRelation());
  }

  private static boolean isRowCount(Expression e) {
    if (!(e instanceof AggregateExpression)) return false;
    AggregateExpression aggregate = (AggregateExpression) e;
    Object function = aggregate.aggregateFunction();
    if (!(function instanceof Count) || aggregate.isDistinct() || aggregate.filter().isDefined()) return false;
    scala.collection.Iterator it = ((Count) function).children().iterator();
    while (it.hasNext()) { Object child = it.next(); if (!(child instanceof Literal) || ((Literal) child).value() == null) return false; }
    return true;
  }

  /** What Python makes of a scan; null where the scan is to stay. */
  private static LogicalPlan replaced(DataSourceV2ScanRelation relation, Expression condition, Set needed) {
    List ours = new ArrayList(); StructType wanted = new StructType();
    Set filtered = condition == null ? new HashSet() : ids(condition.references());
    scala.collection.Iterator it = relation.output().iterator();
    while (it.hasNext()) { Attribute a = (Attribute) it.next(); if (needed != null && !needed.contains(a.exprId()) && !filtered.contains(a.exprId())) continue; ours.add(a); wanted = wanted.add(a.name(), a.dataType(), a.nullable()); }
    Map question = question(relation);
    if (question == null) return null;
    question.put("wanted", wanted.json());
    question.put("condition", condition == null ? null : IcebergPyFilters.describe(condition));
    List parts = (List) IcebergPyBridge.ask("scan.plan", IcebergPyBridge.json(question));
    if (parts == null) return null;
    List branches = new ArrayList();
    for (int i = 0; i < parts.size(); i++) {
      List part = (List) parts.get(i);
      // the first branch keeps the relation's own ids, which the union above then has too
      branches.add(branch((LogicalPlan) part.get(0), (Expression) part.get(1), (List) part.get(2), ours, condition, i > 0));
    }
    if (branches.size() == 1) return (LogicalPlan) branches.get(0);
    return new Union(IcebergPyBridge.seq(branches), false, false);
  }

  /** One group of files: rename its columns to ours, then the query's filter, then what its deletes leave: a condition, and anti-joins with deleted keys. */
  private static LogicalPlan branch(LogicalPlan made, Expression live, List antiJoins, List ours, Expression condition, boolean fresh) {
    Map byName = new HashMap();
    scala.collection.Iterator it = made.output().iterator();
    while (it.hasNext()) { Attribute a = (Attribute) it.next(); byName.put(a.name(), a); }
    List renamed = new ArrayList(); List outputs = new ArrayList(); Map exchanged = new HashMap();
    for (int i = 0; i < ours.size(); i++) {
      Attribute a = (Attribute) ours.get(i);
      ExprId id = fresh ? NamedExpression$.MODULE$.newExprId() : a.exprId();
      Alias alias = new Alias((Expression) byName.remove(a.name()), a.name(), id, a.qualifier(), scala.Option.empty(), IcebergPyBridge.seq(new ArrayList()));
      renamed.add(alias); outputs.add(alias.toAttribute()); exchanged.put(a.exprId(), alias.toAttribute());
    }
    boolean deletes = live != null || !antiJoins.isEmpty();
    if (deletes) renamed.addAll(byName.values());
    LogicalPlan plan = new Project(IcebergPyBridge.seq(renamed), made);
    if (condition != null) plan = new Filter(fresh ? substituted(condition, exchanged) : condition, plan);
    if (live != null) plan = new Filter(live, plan);
    for (int i = 0; i < antiJoins.size(); i++) plan = antiJoin(plan, (Join) antiJoins.get(i));
    return deletes ? new Project(IcebergPyBridge.seq(outputs), plan) : plan;
  }

  /** The right side and condition of an analysed join on another left side; a broadcast, which nothing after this rule would choose. */
  private static LogicalPlan antiJoin(LogicalPlan left, Join analysed) {
    HintInfo broadcast = new HintInfo(scala.Option.apply(BROADCAST$.MODULE$));
    return new Join(left, (LogicalPlan) (Object) analysed.right(), org.apache.spark.sql.catalyst.plans.LeftAnti$.MODULE$, analysed.condition(), new JoinHint(scala.Option.empty(), scala.Option.apply(broadcast)));
  }

  static Expression substituted(Expression e, Map exchanged) {
    if (e instanceof AttributeReference && exchanged.containsKey(((AttributeReference) e).exprId())) return (Expression) exchanged.get(((AttributeReference) e).exprId());
    List children = new ArrayList(); boolean changed = false;
    scala.collection.Iterator it = e.children().iterator();
    while (it.hasNext()) { Expression child = (Expression) it.next(); Expression next = substituted(child, exchanged); changed |= next != child; children.add(next); }
    return changed ? (Expression) e.withNewChildren(IcebergPyBridge.seq(children)) : e;
  }
}

class IcebergPySubqueries extends scala.runtime.AbstractPartialFunction {
  private final IcebergPyRule rule;
  IcebergPySubqueries(IcebergPyRule rule) { this.rule = rule; }
  public boolean isDefinedAt(Object e) { return e instanceof PlanExpression && (Object) ((PlanExpression) e).plan() instanceof LogicalPlan; }
  public Object applyOrElse(Object e, scala.Function1 otherwise) {
    if (!isDefinedAt(e)) return otherwise.apply(e);
    LogicalPlan plan = (LogicalPlan) (Object) ((PlanExpression) e).plan(); LogicalPlan made = rule.rewritten(plan);
    return made == plan ? e : ((PlanExpression) e).withNewPlan(made);
  }
}

/** Relations of `spark.read.format("iceberg-py")`: Spark's own Python data source. */
class IcebergPySource {
  static boolean isOurs(DataSourceV2ScanRelation relation) {
    return relation.scan() instanceof org.apache.spark.sql.execution.datasources.v2.python.PythonScan && isOurs((DataSourceV2Relation) (Object) relation.relation());
  }
  static boolean isOurs(DataSourceV2Relation relation) {
    if (IcebergPyBridge.python == null || !(relation.table() instanceof org.apache.spark.sql.execution.datasources.v2.python.PythonTable)) return false;
    return relation.table().name().equalsIgnoreCase("iceberg-py") && !"false".equalsIgnoreCase(relation.options().get("native"));
  }
  /** The Python object that Spark made and pickled for the relation: it holds the pinned snapshot. Null if there is none yet. */
  static Object pickled(DataSourceV2ScanRelation relation) {
    try {
      Object source = field(relation.relation().table(), "ds");
      Object made = source.getClass().getMethod("getOrCreateDataSourceInPython", new Class[] {String.class, CaseInsensitiveStringMap.class, scala.Option.class})
          .invoke(source, new Object[] {relation.relation().table().name(), relation.relation().options(), scala.Option.apply(relation.relation().table().schema())});
      return made.getClass().getMethod("dataSource", new Class[0]).invoke(made, new Object[0]);
    } catch (ReflectiveOperationException e) { return null; }
  }
  private static Object field(Object owner, String name) throws ReflectiveOperationException {
    java.lang.reflect.Field f = owner.getClass().getDeclaredField(name); f.setAccessible(true); return f.get(owner);
  }
}

/** A condition of Spark's as nested maps; what is not known becomes {"op": "other"}. */
class IcebergPyFilters {
  static Map node(String op, Object[] children) { return IcebergPyBridge.arguments(new Object[] {"op", op, "args", Arrays.asList(children)}); }

  static Object describe(Expression e) {
    if (e instanceof And) return node("and", new Object[] {describe((Expression) (Object) ((And) e).left()), describe((Expression) (Object) ((And) e).right())});
    if (e instanceof Or) return node("or", new Object[] {describe((Expression) (Object) ((Or) e).left()), describe((Expression) (Object) ((Or) e).right())});
    if (e instanceof Not) return node("not", new Object[] {describe((Expression) (Object) ((Not) e).child())});
    if (e instanceof BinaryComparison) return node(e.getClass().getSimpleName(), new Object[] {describe((Expression) (Object) ((BinaryComparison) e).left()), describe((Expression) (Object) ((BinaryComparison) e).right())});
    if (e instanceof IsNull) return node("is_null", new Object[] {describe((Expression) (Object) ((IsNull) e).child())});
    if (e instanceof IsNotNull) return node("not_null", new Object[] {describe((Expression) (Object) ((IsNotNull) e).child())});
    if (e instanceof IsNaN) return node("is_nan", new Object[] {describe((Expression) (Object) ((IsNaN) e).child())});
    if (e instanceof StartsWith) return node("starts_with", new Object[] {describe((Expression) (Object) ((StartsWith) e).left()), describe((Expression) (Object) ((StartsWith) e).right())});
    if (e instanceof In) {
      List args = new ArrayList(); args.add(describe((Expression) (Object) ((In) e).value()));
      scala.collection.Iterator it = ((In) e).list().iterator();
      while (it.hasNext()) args.add(describe((Expression) it.next()));
      return node("in", args.toArray());
    }
    if (e instanceof InSet) {
      List args = new ArrayList(); args.add(describe((Expression) (Object) ((InSet) e).child()));
      scala.collection.Iterator it = ((InSet) e).hset().iterator();
      while (it.hasNext()) args.add(literal(it.next(), ((Expression) (Object) ((InSet) e).child()).dataType()));
      return node("in", args.toArray());
    }
    if (e instanceof Literal) return literal(((Literal) e).value(), ((Literal) e).dataType());
    if (e instanceof Attribute) return IcebergPyBridge.arguments(new Object[] {"column", new ArrayList(Arrays.asList(new Object[] {((Attribute) e).name()}))});
    if (e instanceof GetStructField) {
      Object parent = describe((Expression) (Object) ((GetStructField) e).child());
      if (parent instanceof Map && ((Map) parent).containsKey("column")) {
        List path = new ArrayList((List) ((Map) parent).get("column")); path.add(((GetStructField) e).extractFieldName());
        return IcebergPyBridge.arguments(new Object[] {"column", path});
      }
    }
    return node("other", new Object[0]);
  }

  static Map literal(Object value, DataType type) {
    Object plain = value;
    if (value instanceof UTF8String) plain = value.toString();
    else if (value instanceof org.apache.spark.sql.types.Decimal) plain = ((org.apache.spark.sql.types.Decimal) value).toJavaBigDecimal().toPlainString();
    else if (value instanceof byte[]) { StringBuilder hex = new StringBuilder(); byte[] bytes = (byte[]) value; for (int i = 0; i < bytes.length; i++) hex.append(Character.forDigit((bytes[i] >> 4) & 15, 16)).append(Character.forDigit(bytes[i] & 15, 16)); plain = hex.toString(); }
    else if (value instanceof Double || value instanceof Float) plain = String.valueOf(value);
    else if (!(value == null || value instanceof Number || value instanceof Boolean)) return node("other", new Object[0]);
    return IcebergPyBridge.arguments(new Object[] {"literal", plain, "type", type.typeName()});
  }
}

/** Files chosen by Python, each a partition of its own whose values are facts about the file. */
public class IcebergPyFileIndex implements FileIndex {
  private final String key, root; private final String[] paths; private final long[] sizes; private final InternalRow[] facts; private final StructType factSchema; private final long total;
  public IcebergPyFileIndex(String key, String root, String table, StructType factSchema, long total) {
    String[] lines = table.length() == 0 ? new String[0] : table.split("\n");
    this.key = key; this.root = root; this.factSchema = factSchema;
    paths = new String[lines.length]; sizes = new long[lines.length]; facts = new InternalRow[lines.length]; this.total = total;
    StructField[] fields = factSchema.fields();
    for (int i = 0; i < lines.length; i++) {
      String[] cells = lines[i].split("\t", -1);
      paths[i] = unescaped(cells[0]); sizes[i] = Long.parseLong(cells[1]);
      Object[] values = new Object[fields.length];
      for (int f = 0; f < fields.length; f++) values[f] = fact(cells[f + 2], fields[f].dataType());
      facts[i] = new GenericInternalRow(values);
    }
  }
  private static String unescaped(String cell) {
    if (cell.indexOf('\\') < 0) return cell;
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < cell.length(); i++) {
      char c = cell.charAt(i);
      if (c == '\\') { c = cell.charAt(++i); c = c == 't' ? '\t' : c == 'n' ? '\n' : c; }
      out.append(c);
    }
    return out.toString();
  }
  private static Object fact(String cell, DataType type) {
    if (cell.length() == 0) return null;
    if (type instanceof IntegerType || type instanceof DateType) return Integer.valueOf(cell);
    if (type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType) return Long.valueOf(cell);
    if (type instanceof BooleanType) return Boolean.valueOf(cell);
    if (type instanceof DecimalType) return org.apache.spark.sql.types.Decimal.apply(new java.math.BigDecimal(cell), ((DecimalType) type).precision(), ((DecimalType) type).scale());
    return UTF8String.fromString(unescaped(cell.substring(1)));
  }
  public scala.collection.immutable.Seq rootPaths() { return IcebergPyBridge.seq(IcebergPyBridge.list(new Object[] {new Path(root)})); }
  public StructType partitionSchema() { return factSchema; }
  public String[] inputFiles() { return paths; }
  public void refresh() {}
  public long sizeInBytes() { return total; }
  public scala.Option metadataOpsTimeNs() { return scala.Option.empty(); }
  public scala.collection.immutable.Seq listFiles(scala.collection.immutable.Seq partitionFilters, scala.collection.immutable.Seq dataFilters) {
    List out = new ArrayList(paths.length);
    // Spark has taken conditions on facts alone out of its plan: what does not fulfil them must not be given
    InterpretedPredicate wanted = condition(partitionFilters);
    for (int i = 0; i < paths.length; i++) {
      if (wanted != null && !wanted.eval(facts[i])) continue;
      FileStatus[] one = new FileStatus[] {new FileStatus(sizes[i], false, 1, 134217728L, 0L, new Path(paths[i]))};
      out.add(PartitionDirectory$.MODULE$.apply(facts[i], one));
    }
    return IcebergPyBridge.seq(out);
  }
  /** All the filters at once, on a row of facts; null for none. */
  private InterpretedPredicate condition(scala.collection.immutable.Seq filters) {
    Expression all = null;
    scala.collection.Iterator it = filters.iterator();
    while (it.hasNext()) { Expression one = (Expression) it.next(); all = all == null ? one : new And(all, one); }
    if (all == null) return null;
    Map bound = new HashMap();
    it = all.references().iterator();
    while (it.hasNext()) { Attribute a = (Attribute) it.next(); bound.put(a.exprId(), new BoundReference(factSchema.fieldIndex(a.name()), a.dataType(), true)); }
    return Predicate$.MODULE$.createInterpreted(IcebergPyRule.substituted(all, bound));
  }
  public boolean equals(Object other) { return other instanceof IcebergPyFileIndex && ((IcebergPyFileIndex) other).key.equals(key); }
  public int hashCode() { return key.hashCode(); }
  public String toString() { return "IcebergPy(" + paths.length + " files)"; }
}

/** Broadcasts by the digest of what they hold, the last used of them and so many bytes at most: a broadcast costs more than planning does. */
class IcebergPyBroadcasts {
  private static final long MOST = 64L << 20;
  private final java.util.LinkedHashMap entries = new java.util.LinkedHashMap(16, 0.75f, true);
  private long bytes = 0;

  synchronized Object get(String digest) {
    Object[] entry = (Object[]) entries.get(digest);
    return entry == null ? null : entry[0];
  }
  synchronized void put(String digest, Object broadcast, long size) {
    if (size > MOST || entries.containsKey(digest)) return;
    entries.put(digest, new Object[] {broadcast, Long.valueOf(size)});
    bytes += size;
    java.util.Iterator oldest = entries.values().iterator();
    while (bytes > MOST) { bytes -= ((Long) ((Object[]) oldest.next())[1]).longValue(); oldest.remove(); }
  }
}

/** What Python builds plans with. */
public class IcebergPyPlans {
  private final IcebergPyBroadcasts held = new IcebergPyBroadcasts();

  /** What asks Python at a port: see `IcebergPyCallback`. */
  public IcebergPyCallback callback(Object server, String address, int port, String secrets) throws java.io.IOException { return new IcebergPyCallback(server, address, port, secrets); }
  public void askBy(IcebergPyCallback python) { IcebergPyBridge.python = python; }

  /** A DataFrame over chosen Parquet files; the reader finds columns by field id, set for this relation alone. */
  public Object parquetRelation(Object session, String key, String root, String files, String factsJson, String columnsJson, String optionsJson, long rows) throws com.fasterxml.jackson.core.JsonProcessingException {
    org.apache.spark.sql.classic.SparkSession spark = (org.apache.spark.sql.classic.SparkSession) session;
    StructType facts = (StructType) DataType.fromJson(factsJson);
    StructType columns = (StructType) DataType.fromJson(columnsJson);
    Map options = (Map) IcebergPyBridge.JSON.readValue(optionsJson, Map.class);
    FileIndex index = new IcebergPyFileIndex(key, root, files, facts, IcebergPySizes.estimate(rows, columns));
    HadoopFsRelation relation = new HadoopFsRelation(index, facts, columns, scala.Option.empty(), new ParquetFileFormat(), (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.from(scala.jdk.javaapi.CollectionConverters.asScala(options)), spark);
    return spark.baseRelationToDataFrame(relation);
  }

  /** SQL expressions over a DataFrame at once: each call from Python costs a millisecond. */
  public Object selectedFrame(Object frame, String expressionsJson) throws com.fasterxml.jackson.core.JsonProcessingException {
    return ((org.apache.spark.sql.classic.Dataset) frame).selectExpr(IcebergPyBridge.seq((List) IcebergPyBridge.JSON.readValue(expressionsJson, List.class)));
  }
  public LogicalPlan analysed(Object frame) { return (LogicalPlan) (Object) ((org.apache.spark.sql.classic.Dataset) frame).queryExecution().analyzed(); }
  public List newList() { return new ArrayList(); }
  public List newPart(Object plan, Object live, List antiJoins) { return IcebergPyBridge.list(new Object[] {plan, live, antiJoins == null ? new ArrayList() : antiJoins}); }

  /** Whether the session knows a file system for a scheme, and its class is there. */
  public boolean hasFileSystem(Object session, String scheme) {
    try { return org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, ((org.apache.spark.sql.classic.SparkSession) session).sessionState().newHadoopConf()) != null; }
    catch (Exception e) { return false; } catch (LinkageError e) { return false; }
  }

  /** The condition that keeps rows whose position is in no bitmap of their file; null if bitmaps of that digest are not held. */
  public Object liveRowsHeld(Object plan, String digest, boolean wide) {
    Object broadcast = held.get(digest);
    return broadcast == null ? null : liveRows(plan, broadcast, wide);
  }

  /** The same; the bitmaps come as (length, bytes), in order of the files, and are held for the next plan that needs equal ones. */
  public Object liveRows(Object session, Object plan, String digest, byte[] packed, boolean wide) throws java.io.IOException {
    Object broadcast = new org.apache.spark.api.java.JavaSparkContext(((org.apache.spark.sql.classic.SparkSession) session).sparkContext()).broadcast(bitmaps(packed, wide));
    held.put(digest, broadcast, packed.length);
    return liveRows(plan, broadcast, wide);
  }

  private static ArrayList bitmaps(byte[] packed, boolean wide) throws java.io.IOException {
    ArrayList bitmaps = new ArrayList();
    java.io.DataInputStream in = new java.io.DataInputStream(new java.io.ByteArrayInputStream(packed));
    while (in.available() > 0) {
      byte[] one = new byte[in.readInt()]; in.readFully(one);
      if (one.length == 0) { bitmaps.add(null); continue; }
      java.io.DataInputStream data = new java.io.DataInputStream(new java.io.ByteArrayInputStream(one));
      if (wide) { org.roaringbitmap.longlong.Roaring64NavigableMap b = new org.roaringbitmap.longlong.Roaring64NavigableMap(); b.deserializePortable(data); bitmaps.add(b); }
      else { org.roaringbitmap.RoaringBitmap b = new org.roaringbitmap.RoaringBitmap(); b.deserialize(data); bitmaps.add(b); }
    }
    return bitmaps;
  }

  private static Object liveRows(Object plan, Object broadcast, boolean wide) {
    Attribute ordinal = null, position = null;
    scala.collection.Iterator it = ((LogicalPlan) plan).output().iterator();
    while (it.hasNext()) { Attribute a = (Attribute) it.next(); if (a.name().equals("__ice_ord")) ordinal = a; if (a.name().equals("__ice_pos")) position = a; }
    DataType bitmap = new ObjectType(wide ? org.roaringbitmap.longlong.Roaring64NavigableMap.class : org.roaringbitmap.RoaringBitmap.class);
    Expression all = invoke(new Literal(broadcast, new ObjectType(org.apache.spark.broadcast.Broadcast.class)), "value", new ObjectType(ArrayList.class), new Expression[0]);
    Expression one = invoke(all, "get", bitmap, new Expression[] {ordinal});
    Expression at = wide ? (Expression) position : (Expression) new Cast(position, IntegerType$.MODULE$, scala.Option.empty(), EvalMode.LEGACY());
    Expression deleted = invoke(one, "contains", BooleanType$.MODULE$, new Expression[] {at});
    return new Not(new Coalesce(IcebergPyBridge.seq(IcebergPyBridge.list(new Object[] {deleted, Literal$.MODULE$.apply(Boolean.FALSE)}))));
  }
  private static Expression invoke(Expression target, String method, DataType type, Expression[] arguments) {
    return new org.apache.spark.sql.catalyst.expressions.objects.Invoke(target, method, type, IcebergPyBridge.seq(IcebergPyBridge.list(arguments)), IcebergPyBridge.seq(new ArrayList()), true, true, true);
  }

  /** Add the rule and the strategy to a session once; tells whether they were added. */
  public boolean addRule(Object session) {
    org.apache.spark.sql.ExperimentalMethods methods = ((org.apache.spark.sql.classic.SparkSession) session).experimental();
    scala.collection.immutable.Seq rules = methods.extraOptimizations();
    scala.collection.Iterator it = rules.iterator();
    while (it.hasNext()) if (it.next() instanceof IcebergPyRule) return false;
    methods.extraOptimizations_$eq((scala.collection.immutable.Seq) rules.appended(new IcebergPyRule()));
    methods.extraStrategies_$eq((scala.collection.immutable.Seq) methods.extraStrategies().appended(new IcebergPyStrategy()));
    return true;
  }
  public void removeRule(Object session) {
    org.apache.spark.sql.ExperimentalMethods methods = ((org.apache.spark.sql.classic.SparkSession) session).experimental();
    methods.extraOptimizations_$eq(withoutOurs(methods.extraOptimizations()));
    methods.extraStrategies_$eq(withoutOurs(methods.extraStrategies()));
  }
  private static scala.collection.immutable.Seq withoutOurs(scala.collection.immutable.Seq all) {
    List kept = new ArrayList();
    scala.collection.Iterator it = all.iterator();
    while (it.hasNext()) { Object one = it.next(); if (!(one instanceof IcebergPyRule || one instanceof IcebergPyStrategy)) kept.add(one); }
    return IcebergPyBridge.seq(kept);
  }
  /** The session of that name that asked something, if it is still there. */
  public Object sessionNamed(String id) { return IcebergPyBridge.sessionNamed(id); }
  /** Have a session forget its catalogs of ours, so that they are opened anew when next named. */
  public void forgetCatalogs(Object session) throws ReflectiveOperationException {
    Object manager = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().catalogManager();
    for (Class c = manager.getClass(); c != null; c = c.getSuperclass()) {
      java.lang.reflect.Field[] fields = c.getDeclaredFields();
      for (int i = 0; i < fields.length; i++) {
        if (!scala.collection.mutable.Map.class.isAssignableFrom(fields[i].getType())) continue;
        fields[i].setAccessible(true);
        Map catalogs = scala.jdk.javaapi.CollectionConverters.asJava((scala.collection.mutable.Map) fields[i].get(manager));
        List ours = new ArrayList();
        Iterator names = catalogs.keySet().iterator();
        while (names.hasNext()) { Object name = names.next(); if (catalogs.get(name) instanceof iceberg_pyspark) ours.add(name); }
        for (int n = 0; n < ours.size(); n++) catalogs.remove(ours.get(n));
      }
    }
  }
  /** Load a catalog by its configured name, as a query that names it would. */
  public void openCatalog(Object session, String name) { ((org.apache.spark.sql.classic.SparkSession) session).sessionState().catalogManager().catalog(name); }
  public String sessionHandle(Object session) { return IcebergPyBridge.handleOf(session); }
}
