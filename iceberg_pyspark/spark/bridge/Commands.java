// Statements that change rows, handed to Python; compiled together with Bridge.java, and as free of Iceberg's rules.

import java.util.*;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.v2.*;

/** Marks a write to a table of ours, until `IcebergPyStrategy` meets it; writes nothing itself. */
class IcebergPyWrite implements Write, WriteBuilder, SupportsTruncate, SupportsOverwriteV2, SupportsDynamicOverwrite {
  final IcebergPyTable table;
  IcebergPyWrite(IcebergPyTable table) { this.table = table; }
  public Write build() { return this; }
  public WriteBuilder truncate() { return this; }
  public boolean canOverwrite(org.apache.spark.sql.connector.expressions.filter.Predicate[] predicates) { return true; }
  public WriteBuilder overwrite(org.apache.spark.sql.connector.expressions.filter.Predicate[] predicates) { return this; }
  public WriteBuilder overwriteDynamicPartitions() { return this; }
  public String description() { return "iceberg-py " + table.name(); }
}

/** Plans statements that change a table of ours as one command. */
public class IcebergPyStrategy extends org.apache.spark.sql.execution.SparkStrategy {
  public IcebergPyStrategy() { super(); }
  public scala.collection.immutable.Seq apply(LogicalPlan plan) {
    List commands = new ArrayList();
    if (isOurs(plan)) commands.add(new IcebergPyCommand(plan));
    return IcebergPyBridge.seq(commands);
  }
  private static boolean isOurs(LogicalPlan plan) {
    if (plan instanceof V2WriteCommand) return ((V2WriteCommand) plan).table() instanceof DataSourceV2Relation && isOurs((LogicalPlan) ((V2WriteCommand) plan).table());
    if (plan instanceof DeleteFromTable) return isOurs((LogicalPlan) (Object) ((DeleteFromTable) plan).table());
    if (plan instanceof UpdateTable) return isOurs((LogicalPlan) (Object) ((UpdateTable) plan).table());
    if (plan instanceof MergeIntoTable) return isOurs((LogicalPlan) (Object) ((MergeIntoTable) plan).targetTable());
    if (plan instanceof SubqueryAlias) return isOurs((LogicalPlan) (Object) ((SubqueryAlias) plan).child());
    // the optimizer has made a scan of the rows to change
    if (plan instanceof DataSourceV2ScanRelation) return isOurs((LogicalPlan) ((DataSourceV2ScanRelation) plan).relation());
    return plan instanceof DataSourceV2Relation && ((DataSourceV2Relation) plan).table() instanceof IcebergPyTable;
  }
}

/** Runs a statement by asking Python: "write.run" for rows that a query gives, "dml.run" for changes of the rows there are. */
public class IcebergPyCommand extends V2CommandExec {
  private final LogicalPlan plan;
  public IcebergPyCommand(LogicalPlan plan) { super(); this.plan = plan; }

  public scala.collection.immutable.Seq run() {
    List question = new ArrayList();
    question.add(IcebergPyBridge.session());
    if (plan instanceof V2WriteCommand) {
      write((V2WriteCommand) plan, question);
      IcebergPyBridge.ask("write.run", question);
    } else {
      question.add(plan);
      IcebergPyBridge.ask("dml.run", question);
    }
    return IcebergPyBridge.seq(new ArrayList());
  }

  /** What a write is: its kind, the table, the options, the rows as a DataFrame, and the condition of those to replace. */
  private static void write(V2WriteCommand write, List question) {
    DataSourceV2Relation relation = (DataSourceV2Relation) write.table();
    scala.Option analyzed = scala.Option.empty(); Object condition = null; String kind = "overwrite_partitions"; Map options;
    if (write instanceof AppendData) { kind = "append"; analyzed = ((AppendData) write).analyzedQuery(); options = asJava(((AppendData) write).writeOptions()); }
    else if (write instanceof OverwriteByExpression) {
      OverwriteByExpression overwrite = (OverwriteByExpression) write;
      kind = "overwrite"; analyzed = overwrite.analyzedQuery(); options = asJava(overwrite.writeOptions());
      try { condition = IcebergPyBridge.JSON.writeValueAsString(IcebergPyFilters.describe(overwrite.deleteExpr())); }
      catch (com.fasterxml.jackson.core.JsonProcessingException e) { throw new IllegalStateException(e); }
    } else options = asJava(((org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic) write).writeOptions());
    LogicalPlan query = analyzed.isDefined() ? (LogicalPlan) analyzed.get() : (LogicalPlan) (Object) write.query();
    question.add(kind); question.add(((IcebergPyTable) relation.table()).handle); question.add(options);
    question.add(org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows((org.apache.spark.sql.classic.SparkSession) org.apache.spark.sql.classic.SparkSession.active(), query));
    question.add(condition);
  }
  private static Map asJava(scala.collection.immutable.Map map) { return new HashMap(scala.jdk.javaapi.CollectionConverters.asJava(map)); }

  public scala.collection.immutable.Seq innerChildren() { return plan.children(); }
  public scala.collection.immutable.Seq output() { return IcebergPyBridge.seq(new ArrayList()); }
  public scala.collection.immutable.Seq children() { return IcebergPyBridge.seq(new ArrayList()); }
  public TreeNode withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) { return this; }
  public String nodeName() { return "IcebergPy" + plan.nodeName(); }
  public scala.collection.immutable.Seq otherCopyArgs() { return IcebergPyBridge.seq(IcebergPyBridge.list(new Object[] {plan})); }
  public int productArity() { return 0; }
  public Object productElement(int n) { throw new IndexOutOfBoundsException(String.valueOf(n)); }
  public boolean canEqual(Object other) { return other instanceof IcebergPyCommand; }
  public boolean equals(Object other) { return this == other; }
  public int hashCode() { return System.identityHashCode(this); }
}
