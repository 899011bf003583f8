import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Applies the rule to the plans of subqueries. */
class IcebergPySubqueries extends scala.runtime.AbstractPartialFunction {
  private final IcebergPyRule rule;
  IcebergPySubqueries(IcebergPyRule rule) { this.rule = rule; }
  public boolean isDefinedAt(Object e) {
    return e instanceof PlanExpression
        && (Object) ((PlanExpression) e).plan() instanceof LogicalPlan;
  }
  public Object applyOrElse(Object e, scala.Function1 otherwise) {
    if (!isDefinedAt(e)) return otherwise.apply(e);
    LogicalPlan plan = (LogicalPlan) (Object) ((PlanExpression) e).plan();
    LogicalPlan rewritten = rule.rewriteAll(plan);
    return rewritten == plan ? e : ((PlanExpression) e).withNewPlan(rewritten);
  }
}
