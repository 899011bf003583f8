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
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec;

/**
 * Runs a statement by asking Python: "write.run" and "source.write" for rows that a query gives,
 * "dml.run" for changes of the rows there are.
 */
public class IcebergPyCommand extends V2CommandExec {
  private final LogicalPlan plan;
  public IcebergPyCommand(LogicalPlan plan) {
    super();
    this.plan = plan;
  }

  public scala.collection.immutable.Seq run() {
    List question = new ArrayList();
    question.add(IcebergPyBridge.session());
    if (plan instanceof V2WriteCommand) {
      boolean ours = ((DataSourceV2Relation) target(plan)).table() instanceof IcebergPyTable;
      write((V2WriteCommand) plan, ours, question);
      IcebergPyBridge.ask(ours ? "write.run" : "source.write", question);
    } else {
      question.add(plan);
      IcebergPyBridge.ask("dml.run", question);
    }
    recache();
    return IcebergPyBridge.seq(new ArrayList());
  }

  /**
   * What a write is: its kind, the table, the options, the condition of the rows to replace, the
   * settings; and the rows.
   */
  private static void write(V2WriteCommand write, boolean ours, List question) {
    DataSourceV2Relation relation = (DataSourceV2Relation) write.table();
    org.apache.spark.sql.classic.SparkSession spark =
        (org.apache.spark.sql.classic.SparkSession)
            org.apache.spark.sql.classic.SparkSession.active();
    scala.Option analyzed = scala.Option.empty();
    Object condition = null;
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
    Map described;
    if (ours)
      described = surroundings(IcebergPyBridge.arguments(new Object[] {"kind", kind, "handle",
          ((IcebergPyTable) relation.table()).handle, "options", options, "condition", condition}));
    else {
      // a view has the options of its inserts
      Map all = new HashMap(relation.options().asCaseSensitiveMap());
      all.putAll(options);
      described = IcebergPyBridge.arguments(
          new Object[] {"options", all, "overwrite", Boolean.valueOf(!kind.equals("append"))});
    }
    try {
      question.add(IcebergPyBridge.JSON.writeValueAsString(described));
    } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
    LogicalPlan query =
        analyzed.isDefined() ? (LogicalPlan) analyzed.get() : (LogicalPlan) (Object) write.query();
    question.add(org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(spark, query));
  }
  /**
   * A question with the settings of the session that concern Iceberg's writes, and what a snapshot
   * says of the application.
   */
  static Map surroundings(Map question) {
    org.apache.spark.sql.classic.SparkSession spark =
        (org.apache.spark.sql.classic.SparkSession)
            org.apache.spark.sql.classic.SparkSession.active();
    Map found = new HashMap();
    Iterator all = asJava(spark.conf().getAll()).entrySet().iterator();
    while (all.hasNext()) {
      Map.Entry one = (Map.Entry) all.next();
      String name = (String) one.getKey();
      if (name.startsWith("spark.wap.") || name.startsWith("spark.sql.iceberg."))
        found.put(name, one.getValue());
    }
    String id = spark.sparkContext().applicationId();
    question.put("session", found);
    question.put("application",
        IcebergPyBridge.arguments(new Object[] {"spark.app.id", id, "app-id", id, "app-name",
            spark.sparkContext().appName(), "engine-name", "spark", "engine-version",
            spark.version()}));
    return question;
  }
  /** Have what Spark has cached of the table read anew. */
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
    org.apache.spark.sql.classic.SparkSession spark =
        (org.apache.spark.sql.classic.SparkSession)
            org.apache.spark.sql.classic.SparkSession.active();
    IcebergPyInternals.readCachedAnew(spark, IcebergPyBridge.seq(name));
  }
  /** The relation that a statement changes; the optimizer may have made a scan of it. */
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

  public scala.collection.immutable.Seq innerChildren() { return plan.children(); }
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
