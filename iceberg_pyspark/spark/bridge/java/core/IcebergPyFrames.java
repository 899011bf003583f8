import java.util.ArrayList;
import org.apache.spark.sql.catalyst.analysis.UpdateAttributeNullability$;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions;
import org.apache.spark.sql.catalyst.rules.Rule;

/** Conversions between DataFrames, plans, columns and expressions. */
class IcebergPyFrames {
  static LogicalPlan plan(Object frame) {
    return ((org.apache.spark.sql.classic.Dataset) frame).queryExecution().analyzed();
  }
  /**
   * Return a plan as a frame. A step without names to look up, above a plan that Spark has
   * analysed, is not analysed: a small change has some such steps, and would take longer for them
   * than for its rows. Above an outer join, values may be null that were not below it.
   */
  static Object frame(Object session, LogicalPlan plan) {
    if (isAnalysed(plan)) {
      plan = (LogicalPlan) ((Rule) UpdateAttributeNullability$.MODULE$).apply(plan);
      plan.setAnalyzed();
    }
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(
        (org.apache.spark.sql.classic.SparkSession) session, plan);
  }
  private static boolean isAnalysed(LogicalPlan plan) {
    if (plan.analyzed()) return true;
    boolean isStep =
        plan instanceof Filter || plan instanceof Project || plan instanceof RebalancePartitions;
    return isStep && plan.resolved() && plan.subqueries().isEmpty()
        && isAnalysed((LogicalPlan) plan.children().head());
  }

  static Expression expression(Object session, Object column) {
    return ((org.apache.spark.sql.classic.SparkSession) session)
        .expression((org.apache.spark.sql.Column) column);
  }
  static Object column(Expression expression) {
    return org.apache.spark.sql.classic.ExpressionUtils.column(expression);
  }
  static Alias alias(Expression of, String name) { return alias(of, name, scala.Option.empty()); }
  /** Return an alias with the metadata of an option, if it has one, instead of its value's. */
  static Alias alias(Expression of, String name, scala.Option metadata) {
    return new Alias(of, name, NamedExpression$.MODULE$.newExprId(),
        IcebergPyBridge.seq(new ArrayList()), metadata, IcebergPyBridge.seq(new ArrayList()));
  }
}
