import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockLength;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockStart;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Wraps what an UPDATE draws anew for each row, such as uuid() and rand(). Spark refuses it in a
 * statement that it does not plan itself; the frame that evaluates it has one value for each row.
 * Conditions keep theirs, and are refused as for all tables. So is the file of a row: the frame may
 * read rows by Python.
 */
class IcebergPyDrawnValues {
  static LogicalPlan wrap(LogicalPlan update) {
    return (LogicalPlan) (Object) update.transformExpressions(new Values());
  }

  private static class Values extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object e) { return e instanceof Assignment; }
    public Object applyOrElse(Object e, scala.Function1 otherwise) {
      return isDefinedAt(e) ? ((Expression) e).transform(new Wrap()) : otherwise.apply(e);
    }
  }
  private static class Wrap extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object e) {
      return e instanceof Expression && !(e instanceof PlanExpression)
          && !(e instanceof InputFileName || e instanceof InputFileBlockStart
              || e instanceof InputFileBlockLength)
          && draws((Expression) e);
    }
    public Object applyOrElse(Object e, scala.Function1 otherwise) {
      return isDefinedAt(e)
          ? new IcebergPyFunctionWrapper((Expression) e, ((Expression) e).children())
          : otherwise.apply(e);
    }
  }
  /** Return whether an expression is not deterministic though all that it takes is. */
  private static boolean draws(Expression e) {
    if (e.deterministic()) return false;
    for (Object child : CollectionConverters.asJava(e.children()))
      if (!((Expression) child).deterministic()) return false;
    return true;
  }
}
