import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.CommonExpressionDef;
import org.apache.spark.sql.catalyst.expressions.CommonExpressionRef;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.catalyst.expressions.With;
import org.apache.spark.sql.catalyst.optimizer.ComputeCurrentTime$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern$;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Prepares a statement that changes rows for Spark's optimizer, which sees the statement but not
 * the frames that carry it out. The current time becomes a constant of the statement; the optimizer
 * would compute it again in each frame that has a subquery as analysed. What an expression such as
 * BETWEEN uses twice is written out, or the optimizer would compute it between the statement and
 * its table, whose rows the statement itself never reads.
 */
class IcebergPyStatementRule extends Rule {
  IcebergPyStatementRule() { super(); }
  public TreeNode apply(TreeNode plan) {
    LogicalPlan statement = IcebergPyReferencedTables.statementIn((LogicalPlan) plan);
    if (statement == null || !IcebergPyStrategy.changesRows(statement)) return plan;
    return (TreeNode) ((Rule) ComputeCurrentTime$.MODULE$).apply(withoutCommon((LogicalPlan) plan));
  }

  private static LogicalPlan withoutCommon(LogicalPlan plan) {
    if (IcebergPyStrategy.changesRows(plan)) {
      LogicalPlan written = (LogicalPlan) (Object) plan.transformExpressions(new WrittenOut());
      return written instanceof UpdateTable ? IcebergPyDrawnValues.wrap(written) : written;
    }
    List children = new ArrayList(CollectionConverters.asJava(plan.children()));
    int last = children.size() - 1;
    Object statement = withoutCommon((LogicalPlan) children.get(last));
    if (statement == children.get(last)) return plan;
    children.set(last, statement);
    return (LogicalPlan) plan.withNewChildren(IcebergPyBridge.seq(children));
  }

  /** Replaces expressions that are defined by common expressions by what they stand for. */
  private static class WrittenOut extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object e) {
      // two draws of a random number would not be the same
      return e instanceof RuntimeReplaceable && ((Expression) e).deterministic()
          && hasCommon((Expression) (Object) ((RuntimeReplaceable) e).replacement());
    }
    public Object applyOrElse(Object e, scala.Function1 otherwise) {
      return isDefinedAt(e)
          ? writtenOut((Expression) (Object) ((RuntimeReplaceable) e).replacement(), new HashMap())
          : otherwise.apply(e);
    }
  }
  private static boolean hasCommon(Expression e) {
    return e.containsPattern(TreePattern$.MODULE$.WITH_EXPRESSION());
  }
  private static Expression writtenOut(Expression e, Map byId) {
    if (e instanceof CommonExpressionRef)
      return (Expression) byId.get(((CommonExpressionRef) e).id());
    if (e instanceof With) {
      scala.collection.Iterator it = ((With) e).defs().iterator();
      while (it.hasNext()) {
        CommonExpressionDef one = (CommonExpressionDef) it.next();
        byId.put(one.id(), writtenOut((Expression) (Object) one.child(), byId));
      }
      return writtenOut((Expression) (Object) ((With) e).child(), byId);
    }
    List children = new ArrayList();
    scala.collection.Iterator it = e.children().iterator();
    while (it.hasNext()) children.add(writtenOut((Expression) it.next(), byId));
    return children.isEmpty() ? e : (Expression) e.withNewChildren(IcebergPyBridge.seq(children));
  }

  /** Builds the rule for each session. */
  static class Builder extends scala.runtime.AbstractFunction1 {
    public Object apply(Object session) { return new IcebergPyStatementRule(); }
  }
}
