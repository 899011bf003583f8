import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;

/**
 * The subqueries of a statement that refer to the rows it changes, as Spark has analysed them. Its
 * optimizer makes each the side of a join, with more columns than its values have, but the frames
 * that carry out the statement are analysed again.
 */
class IcebergPyCorrelatedSubqueries extends scala.runtime.AbstractPartialFunction {
  private final Map byId = new HashMap();
  private scala.collection.immutable.Seq tableExpressions;

  /** Return an optimized statement with its subqueries as in the analysed statement, or null. */
  static LogicalPlan restore(LogicalPlan optimized, LogicalPlan analysed) {
    return (LogicalPlan) (Object) optimized.transformExpressions(
        new IcebergPyCorrelatedSubqueries(analysed));
  }
  private IcebergPyCorrelatedSubqueries(LogicalPlan analysed) {
    LogicalPlan statement =
        analysed == null ? null : IcebergPyReferencedTables.statementIn(analysed);
    if (statement == null) return;
    if (analysed instanceof WithCTE) tableExpressions = ((WithCTE) analysed).cteDefs();
    collect(statement.expressions());
  }
  private void collect(scala.collection.immutable.Seq expressions) {
    scala.collection.Iterator it = expressions.iterator();
    while (it.hasNext()) {
      Expression one = (Expression) it.next();
      if (one instanceof SubqueryExpression) byId.put(((SubqueryExpression) one).exprId(), one);
      collect(one.children());
    }
  }

  public boolean isDefinedAt(Object e) {
    return e instanceof SubqueryExpression && ((SubqueryExpression) e).isCorrelated();
  }
  public Object applyOrElse(Object e, scala.Function1 otherwise) {
    if (!isDefinedAt(e)) return otherwise.apply(e);
    SubqueryExpression subquery = (SubqueryExpression) byId.get(((SubqueryExpression) e).exprId());
    if (subquery == null)
      throw new IcebergPyUnsupportedFeatureException("Spark keeps no analysed plan of this "
          + "statement, in which a subquery refers to the changed table; run it by spark.sql(...)");
    LogicalPlan plan = (LogicalPlan) (Object) subquery.plan();
    if (tableExpressions != null) plan = new WithCTE(plan, tableExpressions);
    return subquery.withNewPlan(IcebergPyReferencedTables.pin(plan));
  }
}
