import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.DeleteAction;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.InsertAction;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeAction;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateAction;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/**
 * The parts of a DELETE, UPDATE or MERGE that Spark has analysed. The description for Python is an
 * `AnalysedStatement` of spark/bridge/protocol/write_messages.py, with numbers for expressions.
 */
public class IcebergPyStatement extends IcebergPyExpressions {
  /** The columns of the table, as the statement's expressions refer to them. */
  final scala.collection.immutable.Seq columns;
  private LogicalPlan source;

  IcebergPyStatement(LogicalPlan plan) {
    Map description = new LinkedHashMap();
    LogicalPlan target;
    if (plan instanceof DeleteFromTable) {
      target = (LogicalPlan) (Object) ((DeleteFromTable) plan).table();
      description.put("kind", "delete");
      description.put("condition", number(((DeleteFromTable) plan).condition()));
    } else if (plan instanceof UpdateTable) {
      UpdateTable update = (UpdateTable) plan;
      target = (LogicalPlan) (Object) update.table();
      description.put("kind", "update");
      description.put("condition", optional(update.condition()));
      description.put("assignments", assignments(update.assignments()));
    } else {
      MergeIntoTable merge = (MergeIntoTable) plan;
      target = (LogicalPlan) (Object) merge.targetTable();
      source = (LogicalPlan) (Object) merge.sourceTable();
      description.put("kind", "merge");
      description.put("adds_columns", Boolean.valueOf(merge.withSchemaEvolution()));
      description.put("condition", number(merge.mergeCondition()));
      description.put("matched_actions", actions(merge.matchedActions()));
      description.put("not_matched_actions", actions(merge.notMatchedActions()));
      description.put("not_matched_by_source_actions", actions(merge.notMatchedBySourceActions()));
    }
    columns = target.output();
    IcebergPyTable table = tableOf(target);
    if (!(plan instanceof DeleteFromTable || IcebergPyAssignments.areAssigned(plan))
        && hasStructs(columns))
      throw new IcebergPyUnsupportedFeatureException("Spark has analysed this statement on table "
          + table.name() + " before Iceberg was installed in its session, and stores fields of "
          + "structs by position then; run it again");
    description.put("handle", table.handle);
    description.put("reads_iceberg", Boolean.valueOf(readsIceberg(plan)));
    describe(description);
  }
  /** Return the rows that a MERGE reads. */
  public Object source(Object session) { return IcebergPyFrames.frame(session, source); }

  private boolean readsIceberg(LogicalPlan plan) {
    boolean ours = source != null && IcebergPyRowLevel.reads(source);
    // Spark has optimized these plans, in which rows that Python reads look like any other RDD
    List subqueries = scala.jdk.javaapi.CollectionConverters.asJava(plan.subqueriesAll());
    for (int i = 0; i < subqueries.size(); i++)
      ours |= IcebergPyRowLevel.reads((LogicalPlan) subqueries.get(i))
          || hasRows((LogicalPlan) subqueries.get(i));
    return ours;
  }
  private static boolean hasRows(LogicalPlan plan) {
    scala.collection.Iterator it = plan.collectLeaves().iterator();
    while (it.hasNext())
      if (it.next() instanceof LogicalRDD) return true;
    return false;
  }
  private static boolean hasStructs(scala.collection.immutable.Seq columns) {
    scala.collection.Iterator it = columns.iterator();
    while (it.hasNext())
      if (((Attribute) it.next()).dataType().catalogString().contains("struct<")) return true;
    return false;
  }
  private static IcebergPyTable tableOf(LogicalPlan target) {
    LogicalPlan relation = target;
    while (
        !(relation instanceof DataSourceV2ScanRelation || relation instanceof DataSourceV2Relation))
      relation = (LogicalPlan) relation.children().head();
    if (relation instanceof DataSourceV2ScanRelation)
      relation = (LogicalPlan) (Object) ((DataSourceV2ScanRelation) relation).relation();
    IcebergPyTable table = (IcebergPyTable) ((DataSourceV2Relation) relation).table();
    IcebergPyReadOptions.checkTarget(table.name(), ((DataSourceV2Relation) relation).options());
    return table;
  }

  private Integer optional(scala.Option condition) {
    return condition.isEmpty() ? null : number(condition.get());
  }
  private List assignments(scala.collection.immutable.Seq all) {
    List out = new ArrayList();
    scala.collection.Iterator it = all.iterator();
    while (it.hasNext()) {
      Assignment one = (Assignment) it.next();
      LinkedList path = new LinkedList();
      Expression key = (Expression) (Object) one.key();
      while (key instanceof GetStructField) {
        path.addFirst(((GetStructField) key).extractFieldName());
        key = (Expression) (Object) ((GetStructField) key).child();
      }
      path.addFirst(((Attribute) (Object) key).name());
      // Spark assigns its own value to each column that the statement does not name
      if (((Expression) (Object) one.value()).semanticEquals((Expression) (Object) one.key()))
        continue;
      out.add(IcebergPyBridge.arguments(new Object[] {"path", path, "value", number(one.value())}));
    }
    return out;
  }
  private List actions(scala.collection.immutable.Seq all) {
    List out = new ArrayList();
    scala.collection.Iterator it = all.iterator();
    while (it.hasNext()) {
      MergeAction action = (MergeAction) it.next();
      String op = "delete";
      List assignments = new ArrayList();
      if (action instanceof UpdateAction) {
        op = "update";
        assignments = assignments(((UpdateAction) action).assignments());
      } else if (action instanceof InsertAction) {
        op = "insert";
        assignments = assignments(((InsertAction) action).assignments());
      } else if (!(action instanceof DeleteAction))
        throw new IllegalStateException("Spark has not resolved " + action);
      out.add(IcebergPyBridge.arguments(new Object[] {
          "op", op, "condition", optional(action.condition()), "assignments", assignments}));
    }
    return out;
  }
}
