import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Exists;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSubquery;
import org.apache.spark.sql.catalyst.expressions.ListQuery;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.optimizer.PullupCorrelatedPredicates$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;

/** Subqueries of a condition, as sources whose rows the table's rows must match. */
public class IcebergPySelections {
  /**
   * Return each subquery that every selected row must match; the description has the keys of each,
   * as in `IcebergPyJoins.addKey`.
   */
  public IcebergPySources sources(Object session, Object rows, Object condition) {
    IcebergPySources out = new IcebergPySources();
    List keys = new ArrayList();
    addSources(out, keys, session, rows, condition);
    out.describe(keys);
    return out;
  }
  private static void addSources(
      IcebergPySources out, List allKeys, Object session, Object rows, Object condition) {
    Expression expression = IcebergPyFrames.expression(session, condition);
    if (!SubqueryExpression$.MODULE$.hasSubquery(expression)) return;
    LogicalPlan plan = IcebergPyFrames.plan(
        IcebergPyFrames.frame(session, new Filter(expression, IcebergPyFrames.plan(rows))));
    // move conditions on columns of both sides out of the subquery, to where they are visible
    plan = (LogicalPlan) ((Rule) PullupCorrelatedPredicates$.MODULE$).apply(plan);
    if (!(plan instanceof Filter)) return;
    AttributeSet ours = IcebergPyFrames.plan(rows).outputSet();
    List all = IcebergPyScanParts.conjuncts((Expression) (Object) ((Filter) plan).condition());
    for (int i = 0; i < all.size(); i++) {
      Object one = all.get(i);
      List keys = new ArrayList();
      LogicalPlan query = null;
      scala.collection.immutable.Seq joinConditions = null;
      if (one instanceof InSubquery) {
        ListQuery of = ((InSubquery) one).query();
        query = (LogicalPlan) (Object) of.plan();
        joinConditions = of.joinCond();
        scala.collection.immutable.Seq values = ((InSubquery) one).values();
        for (int k = 0; k < values.size(); k++)
          IcebergPyJoins.addKey(
              out, keys, (Expression) values.apply(k), (Expression) query.output().apply(k), ours);
      } else if (one instanceof Exists) {
        query = (LogicalPlan) (Object) ((Exists) one).plan();
        joinConditions = ((Exists) one).joinCond();
      }
      if (query == null) continue;
      scala.collection.Iterator it = joinConditions.iterator();
      while (it.hasNext()) IcebergPyJoins.addKeys(out, keys, (Expression) it.next(), ours);
      if (keys.isEmpty()) continue;
      out.sources.add(IcebergPyFrames.frame(session, query));
      allKeys.add(keys);
    }
  }
}
