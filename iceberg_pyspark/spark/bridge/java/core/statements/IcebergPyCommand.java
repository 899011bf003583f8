import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec;

/**
 * Runs a statement by a request to Python: writes the rows of a query, or changes existing rows.
 */
public class IcebergPyCommand extends V2CommandExec {
  private final LogicalPlan plan;
  private SparkPlan explanation;
  public IcebergPyCommand(LogicalPlan plan) {
    super();
    this.plan = plan;
  }

  public scala.collection.immutable.Seq run() {
    if (plan instanceof V2WriteCommand)
      write((V2WriteCommand) plan);
    else
      IcebergPyRequests.dmlRun(IcebergPyBridge.session(), IcebergPyReferencedTables.handles(),
          IcebergPyCorrelatedSubqueries.restore(plan, IcebergPyReferencedTables.analysed()));
    recache();
    return IcebergPyBridge.seq(new ArrayList());
  }

  private static void write(V2WriteCommand write) {
    DataSourceV2Relation relation = (DataSourceV2Relation) write.table();
    org.apache.spark.sql.classic.SparkSession spark = IcebergPySessions.active();
    scala.Option analyzed = scala.Option.empty();
    Map condition = null;
    String kind = "overwrite_partitions";
    Map options;
    if (write instanceof AppendData) {
      kind = "append";
      analyzed = ((AppendData) write).analyzedQuery();
      options = asJava(((AppendData) write).writeOptions());
    } else if (write instanceof OverwriteByExpression) {
      OverwriteByExpression overwrite = (OverwriteByExpression) write;
      kind = "overwrite";
      analyzed = overwrite.analyzedQuery();
      options = asJava(overwrite.writeOptions());
      condition = IcebergPyFilters.describe(overwrite.deleteExpr());
    } else
      options = asJava(((OverwritePartitionsDynamic) write).writeOptions());
    LogicalPlan query =
        analyzed.isDefined() ? (LogicalPlan) analyzed.get() : (LogicalPlan) (Object) write.query();
    Object rows = org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(spark, query);
    String session = IcebergPyBridge.session();
    if (relation.table() instanceof IcebergPyTable) {
      String handle = ((IcebergPyTable) relation.table()).handle;
      // DataFrames pass options to the command, SQL passes them to the table
      if (options.isEmpty()) options = IcebergPyReadOptions.ofWrite(relation.options());
      IcebergPyRequests.writeRun(session, handle, kind, options, condition, environment(), rows);
      return;
    }
    // the options of a view also apply to inserts into the view
    Map all = new HashMap(relation.options().asCaseSensitiveMap());
    all.putAll(options);
    IcebergPyRequests.sourceWrite(session, all, !kind.equals("append"), false, rows);
  }
  /**
   * Return the session's settings for Iceberg writes, and the application's entries in a snapshot
   * summary.
   */
  static Map environment() {
    org.apache.spark.sql.classic.SparkSession spark = IcebergPySessions.active();
    Map icebergSettings = new HashMap();
    Iterator all = asJava(spark.conf().getAll()).entrySet().iterator();
    while (all.hasNext()) {
      Map.Entry one = (Map.Entry) all.next();
      String name = (String) one.getKey();
      if (name.startsWith("spark.wap.") || name.startsWith("spark.sql.iceberg."))
        icebergSettings.put(name, one.getValue());
    }
    String id = spark.sparkContext().applicationId();
    return IcebergPyRequests.writeEnvironment(icebergSettings,
        IcebergPyBridge.arguments(new Object[] {"spark.app.id", id, "app-id", id, "app-name",
            spark.sparkContext().appName(), "engine-name", "spark", "engine-version",
            spark.version()}));
  }
  /** Refresh the data that Spark has cached of the table. */
  private void recache() {
    DataSourceV2Relation relation = (DataSourceV2Relation) target(plan);
    if (relation.catalog().isEmpty() || relation.identifier().isEmpty()
        || relation.table() instanceof IcebergPyStagedTable)
      return;
    Identifier identifier = (Identifier) relation.identifier().get();
    List name = new ArrayList();
    name.add(((CatalogPlugin) relation.catalog().get()).name());
    name.addAll(Arrays.asList(identifier.namespace()));
    name.add(identifier.name());
    IcebergPyCachedRows.recache(IcebergPySessions.active(), name);
  }
  /** Return the relation that a statement changes; the optimizer may have made it a scan. */
  static Object target(LogicalPlan plan) {
    if (plan instanceof V2WriteCommand)
      return target((LogicalPlan) ((V2WriteCommand) plan).table());
    if (plan instanceof DeleteFromTable)
      return target((LogicalPlan) (Object) ((DeleteFromTable) plan).table());
    if (plan instanceof UpdateTable)
      return target((LogicalPlan) (Object) ((UpdateTable) plan).table());
    if (plan instanceof MergeIntoTable)
      return target((LogicalPlan) (Object) ((MergeIntoTable) plan).targetTable());
    if (plan instanceof SubqueryAlias)
      return target((LogicalPlan) (Object) ((SubqueryAlias) plan).child());
    return plan instanceof DataSourceV2ScanRelation
        ? (LogicalPlan) ((DataSourceV2ScanRelation) plan).relation()
        : plan;
  }
  private static Map asJava(scala.collection.immutable.Map map) {
    return new HashMap(scala.jdk.javaapi.CollectionConverters.asJava(map));
  }

  public scala.collection.immutable.Seq innerChildren() {
    if (explanation == null && IcebergPyExplanation.isAsked())
      explanation = IcebergPyExplanation.of(plan);
    return explanation == null
        ? plan.children()
        : IcebergPyBridge.seq(IcebergPyBridge.list(new Object[] {explanation}));
  }
  public scala.collection.immutable.Seq output() { return IcebergPyBridge.seq(new ArrayList()); }
  public scala.collection.immutable.Seq children() { return IcebergPyBridge.seq(new ArrayList()); }
  public TreeNode withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return this;
  }
  public String nodeName() { return "IcebergPy" + plan.nodeName(); }
  public scala.collection.immutable.Seq otherCopyArgs() {
    return IcebergPyBridge.seq(IcebergPyBridge.list(new Object[] {plan}));
  }
  public int productArity() { return 0; }
  public Object productElement(int n) { throw new IndexOutOfBoundsException(String.valueOf(n)); }
  public boolean canEqual(Object other) { return other instanceof IcebergPyCommand; }
  public boolean equals(Object other) { return this == other; }
  public int hashCode() { return System.identityHashCode(this); }
}
