import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/**
 * Wraps the Python functions of a statement that changes rows, so that they stay in the statement.
 * Spark's optimizer would evaluate them between the statement and its table, whose rows the
 * statement itself never reads, and it fails if a function of a MERGE takes columns of both sides.
 */
class IcebergPyPythonFunctions extends org.apache.spark.sql.catalyst.rules.Rule {
  IcebergPyPythonFunctions() { super(); }
  public TreeNode apply(TreeNode plan) {
    return IcebergPyStrategy.changesRows(IcebergPyCachedTargets.withoutCache((LogicalPlan) plan))
        ? (TreeNode) (Object) ((LogicalPlan) plan).transformExpressions(new Wrap())
        : plan;
  }
  /** Return the statement with the functions themselves, for the frames that evaluate them. */
  static LogicalPlan unwrap(LogicalPlan plan) {
    return (LogicalPlan) (Object) plan.transformExpressions(new Unwrap());
  }

  private static class Wrap extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object e) { return e instanceof PythonUDF; }
    public Object applyOrElse(Object e, scala.Function1 otherwise) {
      return isDefinedAt(e)
          ? new IcebergPyFunctionWrapper((Expression) e, ((Expression) e).children())
          : otherwise.apply(e);
    }
  }
  private static class Unwrap extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object e) { return e instanceof IcebergPyFunctionWrapper; }
    public Object applyOrElse(Object e, scala.Function1 otherwise) {
      return isDefinedAt(e)
          ? ((IcebergPyFunctionWrapper) e).function.withNewChildren(((Expression) e).children())
          : otherwise.apply(e);
    }
  }

  /** Builds the rule for each session. */
  static class Builder extends scala.runtime.AbstractFunction1 {
    public Object apply(Object session) { return new IcebergPyPythonFunctions(); }
  }
}
