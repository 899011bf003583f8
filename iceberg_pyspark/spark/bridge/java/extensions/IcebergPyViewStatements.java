import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.CurrentNamespace$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.analysis.UnresolvedView;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.AlterViewAs;
import org.apache.spark.sql.catalyst.plans.logical.CreateView;
import org.apache.spark.sql.catalyst.plans.logical.DescribeRelation;
import org.apache.spark.sql.catalyst.plans.logical.DropView;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.RenameTable;
import org.apache.spark.sql.catalyst.plans.logical.SetNamespaceProperties;
import org.apache.spark.sql.catalyst.plans.logical.SetViewProperties;
import org.apache.spark.sql.catalyst.plans.logical.ShowCreateTable;
import org.apache.spark.sql.catalyst.plans.logical.ShowTableProperties;
import org.apache.spark.sql.catalyst.plans.logical.ShowTablesExtended;
import org.apache.spark.sql.catalyst.plans.logical.ShowViews;
import org.apache.spark.sql.catalyst.plans.logical.UnsetViewProperties;
import org.apache.spark.sql.catalyst.util.StringUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/**
 * Statements about our views, which Spark parses but cannot send to a catalog: each becomes a
 * change of the view's namespace, so that Spark itself finds the catalog.
 */
class IcebergPyViewStatements {
  /** Return the plan of a statement on our views, or else the plan of the next parser. */
  static LogicalPlan plan(String text, ParserInterface next) {
    LogicalPlan parsed = parse(text, next);
    LogicalPlan ours = null;
    if (parsed instanceof CreateView)
      ours = create((CreateView) parsed, next);
    else if (parsed instanceof AlterViewAs)
      ours = replaceQuery((AlterViewAs) parsed, next);
    else if (parsed instanceof DropView)
      ours = drop((DropView) parsed, next);
    else if (parsed instanceof SetViewProperties)
      ours = set((SetViewProperties) parsed, next);
    else if (parsed instanceof UnsetViewProperties)
      ours = unset((UnsetViewProperties) parsed, next);
    else if (parsed instanceof RenameTable && ((RenameTable) parsed).isView())
      ours = rename((RenameTable) parsed, next);
    else if (parsed instanceof ShowViews)
      ours = show((ShowViews) parsed);
    else if (parsed instanceof ShowTablesExtended)
      ours = showExtended((ShowTablesExtended) parsed);
    else if (parsed instanceof ShowCreateTable)
      ours = describe("show create", (Object) ((ShowCreateTable) parsed).child(), null, parsed);
    else if (parsed instanceof ShowTableProperties)
      ours = describe("show properties", (Object) ((ShowTableProperties) parsed).table(),
          (String) orNull(((ShowTableProperties) parsed).propertyKey()), parsed);
    else if (parsed instanceof DescribeRelation && ((DescribeRelation) parsed).isExtended())
      ours = describe(
          "describe extended", (Object) ((DescribeRelation) parsed).relation(), null, parsed);
    return ours == null ? parsed : ours;
  }

  private static LogicalPlan create(CreateView s, ParserInterface next) {
    List name = name((Object) s.child());
    if (name == null) return null;
    String kind = s.replace() ? "create or replace"
        : s.allowExisting()   ? "create if not exists"
                              : "create";
    Map statement =
        IcebergPyRequests.viewStatement(kind, last(name), columns(s.userSpecifiedColumns()),
            (String) orNull(s.comment()), asJava(s.properties()), new ArrayList(), new ArrayList());
    return change(name, statement, (String) orNull(s.originalText()), next);
  }
  private static LogicalPlan replaceQuery(AlterViewAs s, ParserInterface next) {
    List name = name((Object) s.child());
    if (name == null) return null;
    return change(name, statement("replace query", name), s.originalText(), next);
  }
  private static LogicalPlan drop(DropView s, ParserInterface next) {
    List name = name((Object) s.child());
    if (name == null) return null;
    return change(name, statement(s.ifExists() ? "drop if exists" : "drop", name), null, next);
  }
  private static LogicalPlan set(SetViewProperties s, ParserInterface next) {
    List name = name((Object) s.child());
    if (name == null) return null;
    Map statement = IcebergPyRequests.viewStatement("set properties", last(name), "", null,
        asJava(s.properties()), new ArrayList(), new ArrayList());
    return change(name, statement, null, next);
  }
  private static LogicalPlan unset(UnsetViewProperties s, ParserInterface next) {
    List name = name((Object) s.child());
    if (name == null) return null;
    String kind = s.ifExists() ? "unset properties if exists" : "unset properties";
    Map statement = IcebergPyRequests.viewStatement(
        kind, last(name), "", null, new HashMap(), asJava(s.propertyKeys()), new ArrayList());
    return change(name, statement, null, next);
  }
  private static LogicalPlan rename(RenameTable s, ParserInterface next) {
    List name = name((Object) s.child());
    if (name == null) return null;
    Map statement = IcebergPyRequests.viewStatement(
        "rename", last(name), "", null, new HashMap(), new ArrayList(), asJava(s.newName()));
    return change(name, statement, null, next);
  }
  private static Map statement(String kind, List name) {
    return IcebergPyRequests.viewStatement(
        kind, last(name), "", null, new HashMap(), new ArrayList(), new ArrayList());
  }

  /** Return the plan that takes a statement to the catalog at the start of the view's name. */
  private static LogicalPlan change(List name, Map statement, String query, ParserInterface next) {
    String namespace = "";
    for (int i = 0; i < name.size() - 1; i++)
    namespace += (i == 0 ? "" : ".") + IcebergPyBridge.quote((String) name.get(i));
    SetNamespaceProperties alter = (SetNamespaceProperties) parse(
        "ALTER NAMESPACE " + namespace + " SET PROPERTIES ('' = '')", next);
    Map properties = new HashMap();
    properties.put(IcebergPyViewChanges.STATEMENT, IcebergPyBridge.json(statement));
    properties.put(IcebergPyViewChanges.NAME, last(name));
    if (query != null) properties.put(IcebergPyViewChanges.QUERY, query);
    return new SetNamespaceProperties((LogicalPlan) (Object) alter.namespace(),
        (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.from(
            scala.jdk.javaapi.CollectionConverters.asScala(properties)));
  }

  /** Return the rows of SHOW VIEWS, or null for a namespace of another catalog. */
  private static LogicalPlan show(ShowViews s) {
    List levels = namespace((Object) s.namespace());
    if (levels == null) return null;
    SparkSession spark = IcebergPySessions.active();
    List names = views((String) levels.remove(0), levels, (String) orNull(s.pattern()));
    List rows = new ArrayList();
    for (int i = 0; i < names.size(); i++)
      rows.add(RowFactory.create(new Object[] {quoted(levels), names.get(i), Boolean.FALSE}));
    List temporary = asJava(spark.sessionState().catalog().listLocalTempViews(
        s.pattern().isDefined() ? (String) s.pattern().get() : "*"));
    for (int i = 0; i < temporary.size(); i++)
      rows.add(RowFactory.create(
          new Object[] {"", ((TableIdentifier) temporary.get(i)).table(), Boolean.TRUE}));
    return LocalRelation$.MODULE$.fromExternalRows(s.output(), IcebergPyBridge.seq(rows));
  }

  /**
   * Return the rows of SHOW TABLE EXTENDED, which Spark answers for tables alone; null for a
   * namespace of another catalog and for one without such views.
   */
  private static LogicalPlan showExtended(ShowTablesExtended s) {
    List levels = namespace((Object) s.namespace());
    if (levels == null) return null;
    iceberg_pyspark catalog = catalog((String) levels.remove(0));
    List names = views(catalog.name(), levels, s.pattern());
    if (names.isEmpty()) return null;
    List rows = IcebergPySessionCommands.details(
        (scala.collection.immutable.Seq) s.output(), catalog, levels, s.pattern(), true);
    for (int i = 0; i < names.size(); i++) {
      List shown = catalog.describeView(levels, (String) names.get(i), "show extended", null);
      if (shown != null)
        rows.add(RowFactory.create(new Object[] {
            quoted(levels), names.get(i), Boolean.FALSE, ((List) shown.get(0)).get(0)}));
    }
    return LocalRelation$.MODULE$.fromExternalRows(
        (scala.collection.immutable.Seq) s.output(), IcebergPyBridge.seq(rows));
  }

  /** Return the catalog and the levels of a namespace, or null if its views are not ours. */
  private static List namespace(Object of) {
    SparkSession spark = IcebergPySessions.active();
    List levels = new ArrayList();
    if (of instanceof UnresolvedNamespace)
      levels = asJava(((UnresolvedNamespace) of).multipartIdentifier());
    else if (of != CurrentNamespace$.MODULE$)
      return null;
    String catalog = spark.sessionState().catalogManager().currentCatalog().name();
    if (levels.isEmpty())
      levels = current(spark);
    else if (IcebergPyStatements.isCatalog(spark, (String) levels.get(0)))
      catalog = (String) levels.remove(0);
    if (!isOurs(spark, catalog)) return null;
    levels.add(0, catalog);
    return levels;
  }
  /** Return the names of a namespace's views that match a pattern, or all if it is null. */
  private static List views(String catalog, List levels, String pattern) {
    List names = catalog(catalog).views(levels);
    return pattern == null ? names
                           : asJava(StringUtils.filterPattern(IcebergPyBridge.seq(names), pattern));
  }
  private static iceberg_pyspark catalog(String name) {
    return (iceberg_pyspark) IcebergPySessions.active().sessionState().catalogManager().catalog(
        name);
  }
  private static String quoted(List levels) {
    String quoted = "";
    for (int i = 0; i < levels.size(); i++)
      quoted += (i == 0 ? "" : ".")
          + org.apache.spark.sql.catalyst.util.QuotingUtils$.MODULE$.quoteIfNeeded(
              (String) levels.get(i));
    return quoted;
  }

  /** Return the rows of a statement that describes a view, or null for a table. */
  private static LogicalPlan describe(
      String statement, Object named, String property, LogicalPlan parsed) {
    List name = name(named);
    if (name == null) return null;
    List values =
        catalog((String) name.get(0))
            .describeView(name.subList(1, name.size() - 1), last(name), statement, property);
    if (values == null) return null;
    List rows = new ArrayList();
    for (int i = 0; i < values.size(); i++)
      rows.add(RowFactory.create(((List) values.get(i)).toArray()));
    return LocalRelation$.MODULE$.fromExternalRows(
        (scala.collection.immutable.Seq) parsed.output(), IcebergPyBridge.seq(rows));
  }

  /**
   * Return the full name of one of our views or tables, starting with the catalog; null for a view
   * of another catalog and for a temporary view.
   */
  private static List name(Object named) {
    scala.collection.immutable.Seq parts = null;
    if (named instanceof UnresolvedIdentifier)
      parts = (scala.collection.immutable.Seq) ((UnresolvedIdentifier) named).nameParts();
    else if (named instanceof UnresolvedView)
      parts = (scala.collection.immutable.Seq) ((UnresolvedView) named).multipartIdentifier();
    else if (named instanceof UnresolvedTableOrView)
      parts =
          (scala.collection.immutable.Seq) ((UnresolvedTableOrView) named).multipartIdentifier();
    SparkSession spark = IcebergPySessions.active();
    if (parts == null || spark.sessionState().catalog().isTempView(parts)) return null;
    List levels = asJava(parts);
    String catalog = spark.sessionState().catalogManager().currentCatalog().name();
    if (levels.size() > 1 && IcebergPyStatements.isCatalog(spark, (String) levels.get(0)))
      catalog = (String) levels.remove(0);
    if (!isOurs(spark, catalog)) return null;
    if (levels.size() == 1) levels.addAll(0, current(spark));
    levels.add(0, catalog);
    return levels;
  }
  /** Return whether a catalog's views are ours; the views of spark_catalog are Spark's. */
  private static boolean isOurs(SparkSession spark, String catalog) {
    return !catalog.equals("spark_catalog") && IcebergPyStatements.isOurs(spark, catalog);
  }
  private static List current(SparkSession spark) {
    return IcebergPyBridge.list(spark.sessionState().catalogManager().currentNamespace());
  }

  /** Return the names and comments of columns as a schema; empty if the statement names none. */
  private static String columns(Object named) {
    List all = asJava(named);
    if (all.isEmpty()) return "";
    StructField[] fields = new StructField[all.size()];
    for (int i = 0; i < fields.length; i++) {
      scala.Tuple2 one = (scala.Tuple2) all.get(i);
      fields[i] = DataTypes.createStructField((String) one._1(), DataTypes.NullType, true);
      scala.Option comment = (scala.Option) one._2();
      if (comment.isDefined()) fields[i] = fields[i].withComment((String) comment.get());
    }
    return new StructType(fields).json();
  }

  private static LogicalPlan parse(String text, ParserInterface next) {
    try {
      return next.parsePlan(text);
    } catch (ParseException e) {
      Platform.throwException(e);
      return null;
    }
  }
  private static Object orNull(Object option) {
    return ((scala.Option) option).isDefined() ? ((scala.Option) option).get() : null;
  }
  private static String last(List name) { return (String) name.get(name.size() - 1); }
  private static List asJava(Object seq) {
    return new ArrayList(scala.jdk.javaapi.CollectionConverters.asJava((scala.collection.Seq) seq));
  }
  private static Map asJava(scala.collection.immutable.Map map) {
    return new HashMap(scala.jdk.javaapi.CollectionConverters.asJava(map));
  }
}
