import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.ResolveRowLevelCommandAssignments$;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.objects.AssertNotNull;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Assigns the values of an UPDATE or MERGE to columns by the names of the fields in them. Spark
 * does so only for tables whose changes it plans itself; values for all others it has cast by
 * position when this rule sees the statement, which takes the casts back.
 */
class IcebergPyAssignments extends Rule {
  /** Marks the statements whose values are assigned by name. */
  private static final TreeNodeTag ASSIGNED = new TreeNodeTag("iceberg_pyspark.assigned");
  IcebergPyAssignments() { super(); }

  public TreeNode apply(TreeNode node) {
    LogicalPlan plan = (LogicalPlan) node;
    if (plan instanceof WithCTE) {
      // the last child of a statement with common table expressions is the statement itself
      List children = new ArrayList(CollectionConverters.asJava(plan.children()));
      int last = children.size() - 1;
      Object statement = apply((TreeNode) children.get(last));
      if (statement == children.get(last)) return plan;
      children.set(last, statement);
      return plan.withNewChildren(IcebergPyBridge.seq(children));
    }
    if (!(plan instanceof UpdateTable || plan instanceof MergeIntoTable) || areAssigned(plan))
      return plan;
    Object target = IcebergPyCommand.target(plan);
    if (!(target instanceof DataSourceV2Relation)) return plan;
    Table table = ((DataSourceV2Relation) target).table();
    if (!(table instanceof IcebergPyTable)) return plan;
    LogicalPlan assigned = assign(plan, new IcebergPyAssignedColumns(table));
    boolean aligned = assigned instanceof UpdateTable ? ((UpdateTable) assigned).aligned()
                                                      : ((MergeIntoTable) assigned).aligned();
    if (!aligned) return plan;
    assigned = on(assigned, table);
    assigned.setTagValue(ASSIGNED, Boolean.TRUE);
    return assigned;
  }
  /** Return whether the values of a statement are assigned by name. */
  static boolean areAssigned(LogicalPlan statement) {
    return statement.getTagValue(ASSIGNED).isDefined();
  }

  /** Return the statement on `columns`, with the values that its columns get. */
  static LogicalPlan assign(LogicalPlan statement, IcebergPyAssignedColumns columns) {
    LogicalPlan given = (LogicalPlan) (Object) statement.transformExpressions(new Given());
    return (LogicalPlan) ((Rule) ResolveRowLevelCommandAssignments$.MODULE$)
        .apply(on(given, columns));
  }

  /** Return a statement, or the relation that is its target, with another table. */
  private static LogicalPlan on(LogicalPlan plan, Table table) {
    if (plan instanceof DataSourceV2Relation) {
      // releases differ in what follows the table
      List arguments = new ArrayList(CollectionConverters.asJava(plan.productIterator().toSeq()));
      arguments.set(0, table);
      return (LogicalPlan) plan.makeCopy(arguments.toArray());
    }
    List children = new ArrayList(CollectionConverters.asJava(plan.children()));
    children.set(0, on((LogicalPlan) children.get(0), table));
    return (LogicalPlan) plan.withNewChildren(IcebergPyBridge.seq(children));
  }

  /** Replaces each assigned value by the value that the statement gives. */
  private static class Given extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object e) { return e instanceof Assignment; }
    public Object applyOrElse(Object e, scala.Function1 otherwise) {
      if (!isDefinedAt(e)) return otherwise.apply(e);
      Expression value = (Expression) (Object) ((Assignment) e).value();
      if (value instanceof Cast
          && value.getTagValue(Cast$.MODULE$.BY_TABLE_INSERTION()).isDefined())
        value = (Expression) (Object) ((Cast) value).child();
      // the assertions of this rule name their columns
      if (value instanceof AssertNotNull && ((AssertNotNull) value).walkedTypePath().isEmpty())
        value = (Expression) (Object) ((AssertNotNull) value).child();
      return new Assignment((Expression) (Object) ((Assignment) e).key(), value);
    }
  }

  /** Builds the rule for each session. */
  static class Builder extends scala.runtime.AbstractFunction1 {
    public Object apply(Object session) { return new IcebergPyAssignments(); }
  }
}
