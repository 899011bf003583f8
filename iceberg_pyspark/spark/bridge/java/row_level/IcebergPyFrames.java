import java.util.ArrayList;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Conversions between DataFrames, plans, columns and expressions. */
class IcebergPyFrames {
  static LogicalPlan plan(Object frame) {
    return ((org.apache.spark.sql.classic.Dataset) frame).queryExecution().analyzed();
  }
  static Object frame(Object session, LogicalPlan plan) {
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(
        (org.apache.spark.sql.classic.SparkSession) session, plan);
  }
  static Expression expression(Object session, Object column) {
    return ((org.apache.spark.sql.classic.SparkSession) session)
        .expression((org.apache.spark.sql.Column) column);
  }
  static Object column(Expression expression) {
    return org.apache.spark.sql.classic.ExpressionUtils.column(expression);
  }
  static Alias alias(Expression of, String name) {
    return new Alias(of, name, NamedExpression$.MODULE$.newExprId(),
        IcebergPyBridge.seq(new ArrayList()), scala.Option.empty(),
        IcebergPyBridge.seq(new ArrayList()));
  }
}
