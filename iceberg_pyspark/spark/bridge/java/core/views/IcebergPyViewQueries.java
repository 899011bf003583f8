import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.execution.datasources.DataSource$;
import org.apache.spark.unsafe.Platform;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The queries of stored views, as Spark's parser reads them: what they may do and what they read.
 */
class IcebergPyViewQueries {
  /** The setting with which views may call Java methods and read files by path. */
  private static final String ALLOWED = "spark.sql.iceberg.views.allow-java-and-files";
  private static final Set JAVA_CALLS =
      new HashSet(Arrays.asList(new String[] {"java_method", "reflect", "try_reflect"}));

  /** What analyses the last query of a thread, and its views without a circle. */
  private static final ThreadLocal CHECKED = new ThreadLocal();

  private static boolean allowsJavaAndFiles() {
    String value =
        IcebergPySessions.active().sessionState().conf().getConfString(ALLOWED, "false").trim();
    if (!value.equalsIgnoreCase("true") && !value.equalsIgnoreCase("false"))
      throw new IcebergPyInvalidRequestException(
          "setting " + ALLOWED + " is '" + value + "'; set it to true or false");
    return value.equalsIgnoreCase("true");
  }

  static LogicalPlan parse(String sql) {
    try {
      return IcebergPySessions.active().sessionState().sqlParser().parsePlan(sql);
    } catch (Exception e) {
      Platform.throwException(e);
      return null;
    }
  }

  /**
   * Refuse a parsed query that calls Java methods or reads files by path, unless allowed. `current`
   * is the catalog and namespace in which its names are resolved.
   */
  static void check(String view, Object query, List current) {
    if (!allowsJavaAndFiles()) checkPart(view, query, current);
  }
  private static void checkPart(String view, Object part, List current) {
    if (part instanceof UnresolvedFunction)
      checkFunction(view, CollectionConverters.asJava(((UnresolvedFunction) part).nameParts()));
    if (part instanceof UnresolvedRelation)
      checkRelation(view,
          CollectionConverters.asJava(((UnresolvedRelation) part).multipartIdentifier()), current);
    // by its name, because releases have several such classes
    if (part.getClass().getSimpleName().endsWith("WithUnresolvedIdentifier")) {
      List name = name(view, ((scala.Product) part).productElement(0));
      checkFunction(view, name);
      checkRelation(view, name, current);
    }
    List below = partsOf(part);
    for (int i = 0; i < below.size(); i++) checkPart(view, below.get(i), current);
  }
  private static void checkFunction(String view, List name) {
    String function = ((String) name.get(name.size() - 1)).toLowerCase(Locale.ROOT);
    if (JAVA_CALLS.contains(function)) refuse(view, "calls Java methods by " + function);
  }
  /** Refuse what Spark reads as format and path because there is no such table. */
  private static void checkRelation(String view, List name, List current) {
    if (name.size() == 2 && isFormat((String) name.get(0)) && !exists(name, current))
      refuse(view, "reads files by path (" + name.get(0) + ".`" + name.get(1) + "`)");
  }
  /** Return the name in IDENTIFIER(...), or refuse one that only a query can compute. */
  private static List name(String view, Object expression) {
    if (!(expression instanceof Literal))
      refuse(view, "computes a name by IDENTIFIER, which may call Java methods or read files");
    try {
      return CollectionConverters.asJava(
          IcebergPySessions.active().sessionState().sqlParser().parseMultipartIdentifier(
              String.valueOf(((Literal) expression).value())));
    } catch (Exception e) {
      Platform.throwException(e);
      return null;
    }
  }
  private static void refuse(String view, String what) {
    throw new IcebergPyUnsupportedFeatureException("view " + view + " " + what
        + ", which is refused in stored views, because it runs as whoever reads the view; if you "
        + "trust all writers of the catalog's views, set " + ALLOWED + " to true");
  }
  private static boolean isFormat(String name) {
    try {
      DataSource$.MODULE$.lookupDataSource(name, IcebergPySessions.active().sessionState().conf());
      return true;
    } catch (Throwable e) {
      return false;
    }
  }

  /** Return all that a plan or an expression consists of, down to the next plans or expressions. */
  static List partsOf(Object node) {
    List parts = new ArrayList();
    if (node instanceof TreeNode) addAll(parts, ((TreeNode) node).innerChildren().iterator());
    if (node instanceof scala.Product)
      addAll(parts, ((scala.Product) node).productIterator());
    else if (node instanceof scala.collection.Iterable)
      addAll(parts, ((scala.collection.Iterable) node).iterator());
    return parts;
  }
  private static void addAll(List parts, scala.collection.Iterator it) {
    while (it.hasNext()) {
      Object part = it.next();
      if (part instanceof scala.Product || part instanceof scala.collection.Iterable)
        parts.add(part);
    }
  }

  /**
   * Throw Spark's error if a stored view reads itself, directly or through other views. Within one
   * query Spark loads each view once, and the views below another one are followed to their end.
   */
  static void checkCircle(CatalogTable view) {
    AnalysisContext context = AnalysisContext$.MODULE$.get();
    Object query = context.relationCache();
    Object[] checked = (Object[]) CHECKED.get();
    if (checked == null || ((WeakReference) checked[0]).get() != query)
      CHECKED.set(checked = new Object[] {new WeakReference(query), new HashSet()});
    visit(view, new ArrayList(), context.nestedViewDepth() > 0 ? (Set) checked[1] : null);
  }
  /** Visit a view; `done` are views without a circle, or null to load no other views. */
  private static void visit(CatalogTable view, List path, Set done) {
    path = new ArrayList(path);
    boolean again = path.contains(view.identifier());
    path.add(view.identifier());
    if (again) throwRecursive(view.identifier(), path);
    if (done != null && !done.add(view.identifier())) return;
    List relations = new ArrayList();
    Set local = new HashSet();
    collect(parse((String) view.viewText().get()), relations, local);
    List current = CollectionConverters.asJava(view.viewCatalogAndNamespace());
    for (int i = 0; i < relations.size(); i++) {
      List name = (List) relations.get(i);
      if (name.size() == 1 && local.contains(name.get(0))) continue;
      TableIdentifier read = resolve(name, current);
      if (read.equals(view.identifier())) {
        path.add(read);
        throwRecursive(read, path);
      }
      CatalogTable next = done == null ? null : viewNamed(read);
      if (next != null) visit(next, path, done);
    }
  }
  /** Add the names of relations, and those of common table expressions. */
  private static void collect(Object part, List relations, Set local) {
    if (part instanceof UnresolvedRelation)
      relations.add(CollectionConverters.asJava(((UnresolvedRelation) part).multipartIdentifier()));
    if (part instanceof UnresolvedWith) {
      scala.collection.Iterator it = ((UnresolvedWith) part).cteRelations().iterator();
      while (it.hasNext()) local.add(((scala.Product) it.next()).productElement(0));
    }
    List below = partsOf(part);
    for (int i = 0; i < below.size(); i++) collect(below.get(i), relations, local);
  }
  /** Return the full name that a name means in a catalog and namespace. */
  private static TableIdentifier resolve(List name, List current) {
    List levels = new ArrayList(name);
    String catalog = (String) current.get(0);
    if (levels.size() == 1)
      levels.addAll(0, current.subList(1, current.size()));
    else if (catalogs().isCatalogRegistered((String) levels.get(0)))
      catalog = (String) levels.remove(0);
    String table = (String) levels.remove(levels.size() - 1);
    return new TableIdentifier(
        table, scala.Option.apply(String.join(".", levels)), scala.Option.apply(catalog));
  }
  private static CatalogManager catalogs() {
    return IcebergPySessions.active().sessionState().catalogManager();
  }
  private static Identifier identifier(TableIdentifier name) {
    String levels = (String) name.database().get();
    return Identifier.of(levels.isEmpty() ? new String[0] : levels.split("\\."), name.table());
  }
  private static boolean exists(List name, List current) {
    TableIdentifier table = resolve(name, current);
    CatalogPlugin catalog = catalogs().catalog((String) table.catalog().get());
    return viewNamed(table) != null
        || catalog instanceof TableCatalog
        && ((TableCatalog) catalog).tableExists(identifier(table));
  }
  /** Return the view of this name, or null if there is none. */
  private static CatalogTable viewNamed(TableIdentifier name) {
    Object catalog = catalogs().catalog((String) name.catalog().get());
    if (name.catalog().get().equals("spark_catalog"))
      return sparksView(identifier(name).namespace(), name.table());
    if (!(catalog instanceof IcebergPyCatalog)) return null;
    V1Table found = ((IcebergPyCatalog) catalog).view(identifier(name));
    return found == null ? null : found.v1Table();
  }
  private static CatalogTable sparksView(String[] namespace, String name) {
    SessionCatalog tables = IcebergPySessions.active().sessionState().catalog();
    if (namespace.length != 1) return null;
    TableIdentifier view = new TableIdentifier(name, scala.Option.apply(namespace[0]));
    if (!tables.tableExists(view)) return null;
    try {
      CatalogTable found = tables.getTableMetadata(view);
      return found.viewText().isDefined() ? found : null;
    } catch (Exception e) {
      Platform.throwException(e);
      return null;
    }
  }

  /** Throw RECURSIVE_VIEW; the path leads from the view, through others, to itself. */
  static void throwRecursive(TableIdentifier view, List path) {
    List names = new ArrayList();
    for (int i = path.indexOf(view); i < path.size(); i++) names.add(quoted(path.get(i)));
    Platform.throwException(new AnalysisException("RECURSIVE_VIEW",
        (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.from(
            CollectionConverters.asScala(IcebergPyBridge.arguments(new Object[] {
                "viewIdent", quoted(view), "newPath", String.join(" -> ", names)})))));
  }
  private static String quoted(Object view) { return ((TableIdentifier) view).quotedString(); }
}
