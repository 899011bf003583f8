import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.jdk.javaapi.CollectionConverters;

/** Replaces calls of the catalog's functions by Spark's own expressions. */
public class IcebergPyCalls extends scala.runtime.AbstractPartialFunction {
  static LogicalPlan replace(LogicalPlan plan) {
    return (LogicalPlan) (Object) ((TreeNode) plan.transformAllExpressions(new IcebergPyCalls()));
  }
  public boolean isDefinedAt(Object e) {
    if (!(e instanceof ApplyFunctionExpression)) return false;
    Object function = ((ApplyFunctionExpression) e).function();
    return function instanceof IcebergPyTransform || function instanceof IcebergPyVersion;
  }
  public Object applyOrElse(Object e, scala.Function1 otherwise) {
    if (!isDefinedAt(e)) return otherwise.apply(e);
    Object function = ((ApplyFunctionExpression) e).function();
    if (function instanceof IcebergPyVersion) return ((IcebergPyVersion) function).literal();
    return ((IcebergPyTransform) function)
        .expression(CollectionConverters.asJava(((Expression) e).children()));
  }
}
