import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The parts of Spark that are private or differ between releases: one method for each part, which
 * looks for what the release has. The parts that read and write files are in
 * `IcebergPyFileInternals`. The compiler checks the other sources.
 */
public class IcebergPyInternals {
  private static final String PYTHON = "org.apache.spark.sql.execution.datasources.v2.python.";

  /** Return for each internal (features.py) why the release lacks it, or null if it does not. */
  public static Map probe(Object session) {
    Map reasons = new LinkedHashMap();
    String[] names = new String[] {"python_source", "event_log_settings", "sized_rows",
        "open_catalogs", "column_default", "schema_evolution", "cached_tables", "parquet_scan",
        "parquet_readers", "orc_readers", "orc_zones", "parquet_writer", "session_parser",
        "session_extensions", "views", "stream_epoch", "changelog", "variant_fields",
        "annotated_columns"};
    for (int i = 0; i < names.length; i++) reasons.put(names[i], problem(names[i], session));
    return reasons;
  }
  private static String problem(String name, Object session) {
    try {
      if (name.equals("python_source")) pickledBy(pythonSource().getType());
      if (name.equals("event_log_settings")) eventLogSettings();
      if (name.equals("sized_rows")) placeOfStatistics(sizedRows());
      if (name.equals("open_catalogs")) mapsOf(catalogManager());
      if (name.equals("column_default"))
        defaultText(org.apache.spark.sql.connector.catalog.ColumnDefaultValue.class);
      if (name.equals("schema_evolution")) schemaEvolution();
      if (name.equals("cached_tables")) cachedTables(CACHES);
      if (name.equals("parquet_scan")) IcebergPyFileInternals.parquetScan();
      if (name.equals("parquet_readers")) IcebergPyFileInternals.parquetReaders();
      if (name.equals("variant_fields")) IcebergPyFileInternals.variantKeys();
      if (name.equals("annotated_columns")) IcebergPyFileInternals.annotatedColumns();
      if (name.equals("orc_readers")) IcebergPyFileInternals.orcReaders();
      if (name.equals("orc_zones")) IcebergPyFileInternals.zonedOrcType();
      if (name.equals("parquet_writer")) IcebergPyFileInternals.parquetWriter();
      if (name.equals("session_parser")) {
        sessionParser().setAccessible(true);
        origin(1, 0);
        syntaxErrors();
      }
      if (name.equals("views")) viewDescription();
      if (name.equals("stream_epoch")) {
        epochField();
        activeStreams();
      }
      if (name.equals("changelog")) classNamed(CHANGELOG);
      if (name.equals("session_extensions")) {
        sessionExtensions().setAccessible(true);
        analysisRules(session == null || !hasState(session)
                ? (Class) Analyzer.class
                : ((org.apache.spark.sql.classic.SparkSession) session)
                      .sessionState()
                      .analyzer()
                      .getClass())
            .setAccessible(true);
        copyOf(new SparkSessionExtensions());
      }
      return null;
    } catch (Exception e) {
      return e.getMessage() == null ? e.toString() : e.getMessage();
    } catch (LinkageError e) {
      return e.toString();
    }
  }

  // ---- python_source: the Python object of Spark's own Python data source

  static boolean isPythonTable(Object table) {
    for (Class c = table.getClass(); c != null; c = c.getSuperclass())
      if (c.getName().equals(PYTHON + "PythonTable")) return true;
    return false;
  }
  static boolean isPythonScan(Object scan) {
    Object own =
        scan instanceof IcebergPyWrappedScan ? ((IcebergPyWrappedScan) scan).wrapped() : scan;
    return own.getClass().getName().equals(PYTHON + "PythonScan");
  }

  /** Return the pickled Python object of a relation, or null if there is none yet. */
  static Object pickledSource(
      Object table, CaseInsensitiveStringMap options, String name, StructType schema) {
    try {
      Field field = pythonSource();
      field.setAccessible(true);
      Method make = pickledBy(field.getType());
      Object source =
          make.invoke(field.get(table), new Object[] {name, options, scala.Option.apply(schema)});
      return source.getClass().getMethod("dataSource", new Class[0]).invoke(source, new Object[0]);
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }
  private static Field pythonSource() throws ReflectiveOperationException {
    classNamed(PYTHON + "PythonScan");
    return field(classNamed(PYTHON + "PythonTable"), "ds");
  }
  private static Method pickledBy(Class source) throws ReflectiveOperationException {
    Method make = method(source, "getOrCreateDataSourceInPython",
        new Class[] {String.class, CaseInsensitiveStringMap.class, scala.Option.class});
    method(make.getReturnType(), "dataSource", new Class[0]);
    return make;
  }

  // ---- timestamps in nanoseconds, which Spark has since 4.3

  static boolean isNanos(DataType type) {
    return type.typeName().startsWith("timestamp_") && type.typeName().endsWith(")");
  }
  /** Return a value of such a type as the number of nanoseconds since 1970. */
  static String nanosOf(Object value) {
    try {
      long micros = value.getClass().getField("epochMicros").getLong(value);
      short rest = value.getClass().getField("nanosWithinMicro").getShort(value);
      return BigInteger.valueOf(micros)
          .multiply(BigInteger.valueOf(1000))
          .add(BigInteger.valueOf(rest))
          .toString();
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  // ---- session_parser: the parser of a session's statements, and positions in their text

  static void setParser(Object sessionState, Object parser) {
    try {
      Field field = sessionParser();
      field.setAccessible(true);
      field.set(sessionState, parser);
    } catch (ReflectiveOperationException e) {
      Platform.throwException(e);
    }
  }
  private static Field sessionParser() throws ReflectiveOperationException {
    return field(classNamed("org.apache.spark.sql.internal.SessionState"), "sqlParser");
  }
  /** Return PARSE_SYNTAX_ERROR at a line (from 1) and a position in the line (from 0). */
  static Throwable syntaxError(
      String text, int line, int position, scala.collection.immutable.Map parameters) {
    try {
      Constructor make = syntaxErrors();
      Object[] arguments = new Object[make.getParameterTypes().length];
      java.util.Arrays.fill(arguments, origin(line, position));
      arguments[0] = scala.Option.apply(text);
      arguments[arguments.length - 2] = "PARSE_SYNTAX_ERROR";
      arguments[arguments.length - 1] = parameters;
      return (Throwable) make.newInstance(arguments);
    } catch (ReflectiveOperationException e) {
      return e;
    }
  }
  /** Its parameters: the text, start and (in some releases) end, the condition, its parameters. */
  private static Constructor syntaxErrors() throws ReflectiveOperationException {
    Constructor[] all =
        classNamed("org.apache.spark.sql.catalyst.parser.ParseException").getConstructors();
    for (int i = 0; i < all.length; i++) {
      Class[] parameterTypes = all[i].getParameterTypes();
      int last = parameterTypes.length - 1;
      if (last >= 3
          && parameterTypes[0] == scala.Option.class && parameterTypes[last - 1] == String.class
          && parameterTypes[last] == scala.collection.immutable.Map.class
          && parameterTypes[1].getName().endsWith(".Origin")
          && parameterTypes[last - 2] == parameterTypes[1])
        return all[i];
    }
    throw new NoSuchMethodException("ParseException takes no place, condition and parameters");
  }
  /** Newer releases have more fields, all of them options. */
  private static Object origin(int line, int position) throws ReflectiveOperationException {
    Constructor[] all = classNamed("org.apache.spark.sql.catalyst.trees.Origin").getConstructors();
    if (all.length != 1)
      throw new NoSuchMethodException("Origin has " + all.length + " constructors");
    Object[] options = new Object[all[0].getParameterTypes().length];
    java.util.Arrays.fill(options, scala.Option.empty());
    options[0] = scala.Option.apply(Integer.valueOf(line));
    options[1] = scala.Option.apply(Integer.valueOf(position));
    return all[0].newInstance(options);
  }

  // ---- session_extensions: the extensions of a session and of its copies

  static void setExtensions(org.apache.spark.sql.classic.SparkSession session,
      SparkSessionExtensions extensions) throws ReflectiveOperationException {
    Field field = sessionExtensions();
    field.setAccessible(true);
    field.set(session, extensions);
  }
  private static Field sessionExtensions() throws ReflectiveOperationException {
    return field(org.apache.spark.sql.classic.SparkSession.class, "extensions");
  }
  /** Return whether a session may have built its state, which it does when it is first needed. */
  static boolean hasState(Object session) {
    try {
      Field field = field(org.apache.spark.sql.classic.SparkSession.class, "sessionState");
      field.setAccessible(true);
      return field.get(session) != null;
    } catch (ReflectiveOperationException e) {
      // a release that keeps it elsewhere: Iceberg is then installed in what it has built
      return true;
    }
  }
  /** Set the rules that an analyzer applies after Spark has resolved a plan. */
  static void setAnalysisRules(Analyzer analyzer, scala.collection.immutable.Seq rules)
      throws ReflectiveOperationException {
    Field field = analysisRules(analyzer.getClass());
    field.setAccessible(true);
    field.set(analyzer, rules);
  }
  private static Field analysisRules(Class analyzer) throws ReflectiveOperationException {
    return field(analyzer, "postHocResolutionRules");
  }
  /** Return new extensions with all that was injected into the original. */
  static SparkSessionExtensions copyOf(SparkSessionExtensions original)
      throws ReflectiveOperationException {
    SparkSessionExtensions copy = new SparkSessionExtensions();
    Field[] fields = SparkSessionExtensions.class.getDeclaredFields();
    for (int i = 0; i < fields.length; i++) {
      if (Modifier.isStatic(fields[i].getModifiers())) continue;
      fields[i].setAccessible(true);
      if (!scala.collection.mutable.Buffer.class.isAssignableFrom(fields[i].getType()))
        throw new NoSuchFieldException(
            "SparkSessionExtensions has more than lists: " + fields[i].getName());
      ((scala.collection.mutable.Buffer) fields[i].get(copy))
          .addAll((scala.collection.mutable.Buffer) fields[i].get(original));
    }
    return copy;
  }

  // ---- event_log_settings: the settings by which the event log decides what to redact

  /** Make an event log use these settings instead of its own. */
  static void setEventLogSettings(Object eventLog, SparkConf settings)
      throws ReflectiveOperationException {
    Field field = eventLogSettings();
    field.setAccessible(true);
    if (field.get(eventLog).getClass() != settings.getClass()) field.set(eventLog, settings);
  }
  private static Field eventLogSettings() throws ReflectiveOperationException {
    return field(classNamed("org.apache.spark.scheduler.EventLoggingListener"), "sparkConf");
  }

  // ---- sized_rows: the constructor of a plan over an RDD, which grows from release to release

  /** Return a copy of `rows` with statistics for Spark, or `rows` itself if that fails. */
  static Object sizedRows(LogicalRDD rows, Object statistics) {
    try {
      Constructor make = sizedRows();
      List arguments = new ArrayList(CollectionConverters.asJava(rows.productIterator().toSeq()));
      arguments.addAll(CollectionConverters.asJava(rows.otherCopyArgs()));
      arguments.set(placeOfStatistics(make), scala.Option.apply(statistics));
      return make.newInstance(arguments.toArray());
    } catch (ReflectiveOperationException e) {
      return rows;
    } catch (IllegalArgumentException e) {
      return rows;
    }
  }
  private static Constructor sizedRows() throws ReflectiveOperationException {
    Constructor[] all = LogicalRDD.class.getConstructors();
    if (all.length != 1)
      throw new NoSuchMethodException("LogicalRDD has " + all.length + " constructors");
    return all[0];
  }
  /** The parameter for statistics follows the session. */
  private static int placeOfStatistics(Constructor make) throws ReflectiveOperationException {
    Class[] parameterTypes = make.getParameterTypes();
    for (int i = 0; i + 1 < parameterTypes.length; i++)
      if (org.apache.spark.sql.SparkSession.class.isAssignableFrom(parameterTypes[i])
          && parameterTypes[i + 1] == scala.Option.class)
        return i + 1;
    throw new NoSuchMethodException("LogicalRDD takes no statistics behind its session");
  }

  // ---- stream_epoch: the number of the batch that a stream writes, and its output mode

  static boolean hasEpochs() {
    try {
      epochField();
      activeStreams();
      return true;
    } catch (ReflectiveOperationException e) {
      return false;
    }
  }
  static Long epochOf(Object batchWrite) {
    try {
      return (Long) epochField().get(batchWrite);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }
  /** Return the output mode of a query: Spark builds the same write for Append and Update. */
  static String outputMode(Object session, String queryId) {
    Object mode = partOf(session, queryId, "outputMode");
    if (mode.equals(org.apache.spark.sql.streaming.OutputMode.Append())) return "append";
    if (mode.equals(org.apache.spark.sql.streaming.OutputMode.Complete())) return "complete";
    if (mode.equals(org.apache.spark.sql.streaming.OutputMode.Update())) return "update";
    throw new UnsupportedOperationException("an Iceberg table has no output mode " + mode);
  }
  /** Return the table that a query writes to. */
  static Object sinkOf(Object session, String queryId) { return partOf(session, queryId, "sink"); }
  private static Object partOf(Object session, String queryId, String name) {
    try {
      Object shared = ((org.apache.spark.sql.classic.SparkSession) session).sharedState();
      Map streams = (Map) activeStreams().invoke(shared, new Object[0]);
      Object stream = streams.get(java.util.UUID.fromString(queryId));
      return method(stream.getClass(), name, new Class[0]).invoke(stream, new Object[0]);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }
  private static Method activeStreams() throws ReflectiveOperationException {
    return method(
        org.apache.spark.sql.internal.SharedState.class, "activeStreamingQueries", new Class[0]);
  }
  private static Field epochField() throws ReflectiveOperationException {
    Field field =
        org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite.class.getDeclaredField(
            "epochId");
    field.setAccessible(true);
    return field;
  }

  // ---- changelog: the change feed that Spark asks a catalog for

  private static final String CHANGELOG = "org.apache.spark.sql.connector.catalog.Changelog";

  /** Call `IcebergPyChangelog.of`, whose class a release may lack. */
  static Object changelog(Object[] arguments) {
    try {
      Method[] all = classNamed("IcebergPyChangelog").getMethods();
      for (int i = 0; i < all.length; i++)
        if (all[i].getName().equals("of")) return all[i].invoke(null, arguments);
      throw new NoSuchMethodException("IcebergPyChangelog.of");
    } catch (InvocationTargetException e) {
      Platform.throwException(e.getCause());
      return null;
    } catch (ReflectiveOperationException e) {
      throw new IcebergPyUnsupportedFeatureException("table " + arguments[2]
          + ": this release of Spark has another change feed than the ones that are known (" + e
          + "); read the metadata table changes");
    }
  }

  // ---- open_catalogs: the catalogs that a session has loaded

  /** Return the catalogs of a session by name, as mutable maps. */
  static List openCatalogs(Object session) throws ReflectiveOperationException {
    Object manager =
        ((org.apache.spark.sql.classic.SparkSession) session).sessionState().catalogManager();
    List catalogs = new ArrayList();
    List maps = mapsOf(manager.getClass());
    for (int i = 0; i < maps.size(); i++)
      catalogs.add(CollectionConverters.asJava(
          (scala.collection.mutable.Map) ((Field) maps.get(i)).get(manager)));
    return catalogs;
  }
  /** Return the class of the catalogs of a session, which since 4.2 has another name. */
  private static Class catalogManager() throws ReflectiveOperationException {
    Class manager = org.apache.spark.sql.connector.catalog.CatalogManager.class;
    if (!manager.isInterface()) return manager;
    return classNamed(manager.getPackageName() + ".DefaultCatalogManager");
  }
  private static List mapsOf(Class manager) throws ReflectiveOperationException {
    List maps = new ArrayList();
    for (Class c = manager; c != null; c = c.getSuperclass()) {
      Field[] fields = c.getDeclaredFields();
      for (int i = 0; i < fields.length; i++) {
        if (!scala.collection.mutable.Map.class.isAssignableFrom(fields[i].getType())) continue;
        fields[i].setAccessible(true);
        maps.add(fields[i]);
      }
    }
    if (maps.isEmpty())
      throw new NoSuchFieldException(manager.getName() + " holds no map of catalogs");
    return maps;
  }

  // ---- views: a class that describes Spark's views, with more fields in newer releases

  /** Return a table that Spark treats as a view of its own. */
  static org.apache.spark.sql.connector.catalog.V1Table view(Object identifier, Object schema,
      String sql, String catalog, scala.collection.immutable.Seq namespace) {
    org.apache.spark.sql.catalyst.catalog.CatalogTable$ companion =
        org.apache.spark.sql.catalyst.catalog.CatalogTable$.MODULE$;
    try {
      Method described = viewDescription();
      Object[] values = new Object[described.getParameterCount()];
      values[0] = identifier;
      values[1] = org.apache.spark.sql.catalyst.catalog.CatalogTableType$.MODULE$.VIEW();
      values[2] = org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat$.MODULE$.empty();
      values[3] = schema;
      for (int i = 4; i < values.length; i++)
        values[i] = viewDefault(i).invoke(companion, new Object[0]);
      values[VIEW_PROPERTIES] = companion.catalogAndNamespaceToProps(catalog, namespace);
      values[VIEW_TEXT] = scala.Option.apply(sql);
      return new org.apache.spark.sql.connector.catalog.V1Table(
          (org.apache.spark.sql.catalyst.catalog.CatalogTable) described.invoke(companion, values));
    } catch (ReflectiveOperationException e) {
      throw new IcebergPyUnsupportedFeatureException("view " + identifier
          + " cannot be read on this release of Spark, whose description of views is another ("
          + e.getMessage() + "); read its tables");
    }
  }
  private static final int VIEW_PROPERTIES = 11, VIEW_TEXT = 13;
  /**
   * Return the factory of a view's description; all but its first four parameters have defaults.
   */
  static Method viewDescription() throws ReflectiveOperationException {
    Method[] all = org.apache.spark.sql.catalyst.catalog.CatalogTable$.class.getMethods();
    for (int i = 0; i < all.length; i++) {
      Class[] types = all[i].getParameterTypes();
      if (all[i].getName().equals("apply") && types.length > VIEW_TEXT
          && types[VIEW_PROPERTIES] == scala.collection.immutable.Map.class
          && types[VIEW_TEXT] == scala.Option.class) {
        for (int n = 4; n < types.length; n++) viewDefault(n);
        return all[i];
      }
    }
    throw new NoSuchMethodException("CatalogTable.apply");
  }
  private static Method viewDefault(int index) throws ReflectiveOperationException {
    return org.apache.spark.sql.catalyst.catalog.CatalogTable$.class.getMethod(
        "apply$default$" + (index + 1), new Class[0]);
  }

  // ---- column_default: the text of a default, by a class whose parents differ in each release

  /** Return the SQL text of a column's default, or null if there is none. */
  static String defaultText(Object value) {
    if (value == null) return null;
    try {
      Method text = defaultText(value.getClass());
      text.setAccessible(true);
      return (String) text.invoke(value, new Object[0]);
    } catch (ReflectiveOperationException e) {
      throw new IcebergPyUnsupportedFeatureException(
          "DEFAULT of a column in SQL: not on this release of Spark (" + e.getMessage()
          + "); give it by session.table(name).update_schema()");
    }
  }
  private static Method defaultText(Class value) throws ReflectiveOperationException {
    return method(value, "getSql", new Class[0]);
  }

  // ---- schema_evolution: the capability that MERGE may add columns, which 4.0 lacks

  static void addSchemaEvolution(Set capabilities) {
    try {
      capabilities.add(schemaEvolution());
    } catch (ReflectiveOperationException e) {
      // a warning of the installation names the missing internal
      return;
    }
  }
  private static Object schemaEvolution() throws ReflectiveOperationException {
    return field(
        org.apache.spark.sql.connector.catalog.TableCapability.class, "AUTOMATIC_SCHEMA_EVOLUTION")
        .get(null);
  }

  // ---- cached_tables: cached again after a change, or only uncached if a release cannot do that

  private static final Class CACHES = org.apache.spark.sql.execution.CacheManager.class;

  /** Refresh or drop the data that Spark has cached of a changed table. */
  static void recacheTable(
      org.apache.spark.sql.classic.SparkSession session, scala.collection.immutable.Seq name) {
    Object caches = session.sharedState().cacheManager();
    try {
      Method recache = cachedTables(caches.getClass());
      boolean recaches = recache.getName().startsWith("recache");
      recache.invoke(caches, new Object[] {session, name, Boolean.valueOf(!recaches)});
    } catch (InvocationTargetException e) {
      Platform.throwException(e.getCause());
    } catch (ReflectiveOperationException e) {
      // a warning of the installation names the missing internal
      return;
    }
  }
  private static Method cachedTables(Class caches) throws ReflectiveOperationException {
    Class[] parameterTypes = new Class[] {org.apache.spark.sql.classic.SparkSession.class,
        scala.collection.immutable.Seq.class, Boolean.TYPE};
    try {
      // cached reads of an explicit version stay as they are
      return method(caches, "recacheTableOrView", parameterTypes);
    } catch (NoSuchMethodException e) {
      // also uncaches the plans that read the table
      return method(caches, "uncacheTableOrView", parameterTypes);
    }
  }

  // ---- look-ups, whose errors name what is missing

  /** Return a class without initializing it. */
  static Class classNamed(String name) throws ReflectiveOperationException {
    try {
      return Class.forName(name, false, IcebergPyInternals.class.getClassLoader());
    } catch (ClassNotFoundException e) {
      throw new ClassNotFoundException("there is no class " + name);
    }
  }
  static Constructor constructor(Class owner, Class[] parameterTypes)
      throws ReflectiveOperationException {
    try {
      return owner.getConstructor(parameterTypes);
    } catch (NoSuchMethodException e) {
      throw new NoSuchMethodException(
          owner.getName() + " has no constructor of the arguments known here");
    }
  }
  static Field field(Class owner, String name) throws ReflectiveOperationException {
    try {
      return owner.getDeclaredField(name);
    } catch (NoSuchFieldException e) {
      throw new NoSuchFieldException(owner.getName() + " has no field " + name);
    }
  }
  static Method method(Class owner, String name, Class[] parameterTypes)
      throws ReflectiveOperationException {
    try {
      return owner.getMethod(name, parameterTypes);
    } catch (NoSuchMethodException e) {
      throw new NoSuchMethodException(owner.getName() + " has no method " + name + " of "
          + parameterTypes.length + " arguments");
    }
  }
}
