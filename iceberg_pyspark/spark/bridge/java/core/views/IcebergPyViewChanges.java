import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;

/** CREATE, ALTER and DROP VIEW, which reach our catalog as properties of a namespace. */
public class IcebergPyViewChanges {
  /** The property with the statement as JSON; no real namespace has this property. */
  public static final String STATEMENT = "iceberg_pyspark.view_statement";
  /** The properties with the view's name and, if there is a query, the query's text. */
  public static final String NAME = "iceberg_pyspark.view_name";
  public static final String QUERY = "iceberg_pyspark.view_query";

  static void run(String catalog, String handle, List namespace, Map properties) {
    String sql = (String) properties.get(QUERY);
    String name = (String) properties.get(NAME);
    Map statement = IcebergPyBridge.values((String) properties.get(STATEMENT));
    Map query = sql == null ? null : analyse(sql, catalog, namespace, name);
    IcebergPyRequests.viewChange(handle, namespace, statement, query);
    namespace = new ArrayList(namespace);
    namespace.add(0, catalog);
    namespace.add(name);
    IcebergPyInternals.recacheTable(IcebergPySessions.active(), IcebergPyBridge.seq(namespace));
  }

  private static Map analyse(String sql, String catalog, List namespace, String name) {
    SparkSession spark = IcebergPySessions.active();
    TableIdentifier own = new TableIdentifier(name,
        scala.Option.apply(scala.jdk.javaapi.CollectionConverters.asScala(namespace).mkString(".")),
        scala.Option.apply(catalog));
    LogicalPlan parsed = IcebergPyViewQueries.parse(sql);
    List current = IcebergPyBridge.list(spark.sessionState().catalogManager().currentNamespace());
    current.add(0, spark.sessionState().catalogManager().currentCatalog().name());
    IcebergPyViewQueries.check(own.unquotedString(), parsed, current);
    LogicalPlan plan =
        (LogicalPlan) (Object) org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(spark, parsed)
            .queryExecution()
            .analyzed();
    List temporaryObjects = new ArrayList();
    List path = new ArrayList();
    path.add(own);
    functions(parsed, spark, temporaryObjects);
    views(plan, temporaryObjects, path);
    return IcebergPyRequests.analysedQuery(sql, plan.schema().json(), temporaryObjects,
        spark.sessionState().catalogManager().currentCatalog().name(),
        IcebergPyBridge.list(spark.sessionState().catalogManager().currentNamespace()),
        spark.version());
  }

  /** Add the temporary functions that a parsed plan names. */
  private static void functions(Object node, SparkSession spark, List temporaryObjects) {
    if (node instanceof UnresolvedFunction) {
      scala.collection.immutable.Seq parts =
          (scala.collection.immutable.Seq) ((UnresolvedFunction) node).nameParts();
      if (parts.size() == 1
          && spark.sessionState().catalog().isTemporaryFunction(
              new FunctionIdentifier((String) parts.head(), scala.Option.empty())))
        add(temporaryObjects, "function " + parts.head());
    }
    List below = IcebergPyViewQueries.partsOf(node);
    for (int i = 0; i < below.size(); i++) functions(below.get(i), spark, temporaryObjects);
  }
  /**
   * Add the temporary views and variables that an analysed plan reads; throw Spark's error if it
   * reads the view at the start of `path`, which leads to the plan.
   */
  private static void views(Object node, List temporaryObjects, List path) {
    if (node instanceof View) {
      View view = (View) node;
      TableIdentifier read = view.desc().identifier();
      if (view.isTempView())
        add(temporaryObjects, "view " + read.table());
      else {
        path = new ArrayList(path);
        path.add(read);
        if (read.equals(path.get(0))) IcebergPyViewQueries.throwRecursive(read, path);
      }
    }
    // by its name, because the class is younger than the others
    if (node.getClass().getSimpleName().equals("VariableReference"))
      add(temporaryObjects, "variable " + ((Expression) node).sql());
    List below = below(node);
    for (int i = 0; i < below.size(); i++) views(below.get(i), temporaryObjects, path);
  }
  private static void add(List all, Object one) {
    if (!all.contains(one)) all.add(one);
  }
  /** Return the parts of a plan or an expression, including the plans of subqueries. */
  private static List below(Object node) {
    List all = new ArrayList();
    if (!(node instanceof TreeNode)) return all;
    addAll(all, ((TreeNode) node).children());
    addAll(all, ((TreeNode) node).innerChildren());
    if (node instanceof QueryPlan) addAll(all, ((QueryPlan) node).expressions());
    if (node instanceof SubqueryExpression) all.add(((SubqueryExpression) node).plan());
    return all;
  }
  private static void addAll(List all, Object seq) {
    scala.collection.Iterator it = ((scala.collection.Iterable) seq).iterator();
    while (it.hasNext()) all.add(it.next());
  }
}
