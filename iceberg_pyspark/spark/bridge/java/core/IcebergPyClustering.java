import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.plans.logical.Union;

/**
 * The columns by which a plan may want rows together: those of joins, groups, windows. A scan that
 * is grouped by any other has more tasks and saves no shuffle.
 */
class IcebergPyClustering {
  /** The ids of such columns, wherever in the plan they are named. */
  static Set of(LogicalPlan plan) {
    Set wanted = new HashSet();
    List same = new ArrayList();
    // Spark optimizes a subquery by itself, and joins its rows by their columns later
    if (plan instanceof Subquery) wanted.addAll(IcebergPyRule.ids(plan.outputSet()));
    collect(plan, wanted, same);
    // a name for a name: what is above comes first, but a union knows no order
    for (boolean found = true; found;) {
      found = false;
      for (int i = 0; i < same.size(); i++) {
        Object[] pair = (Object[]) same.get(i);
        if (wanted.contains(pair[0])) found |= wanted.addAll((Set) pair[1]);
      }
    }
    return wanted;
  }

  private static void collect(LogicalPlan plan, Set wanted, List same) {
    if (plan instanceof Aggregate) {
      references(((Aggregate) plan).groupingExpressions(), wanted);
      names(((Aggregate) plan).aggregateExpressions(), same);
    } else if (plan instanceof Project) {
      names(((Project) plan).projectList(), same);
    } else if (plan instanceof Union) {
      columns((Union) plan, same);
    } else if (!plan.subqueries().isEmpty()
        || !(plan instanceof Filter || plan instanceof Sort || plan instanceof LocalLimit
            || plan instanceof GlobalLimit)) {
      wanted.addAll(IcebergPyRule.ids(plan.references()));
    }
    scala.collection.Iterator children = plan.children().iterator();
    while (children.hasNext()) collect((LogicalPlan) children.next(), wanted, same);
  }

  private static void references(scala.collection.immutable.Seq expressions, Set out) {
    scala.collection.Iterator it = expressions.iterator();
    while (it.hasNext()) out.addAll(IcebergPyRule.ids(((Expression) it.next()).references()));
  }
  private static void names(scala.collection.immutable.Seq expressions, List same) {
    scala.collection.Iterator it = expressions.iterator();
    while (it.hasNext()) {
      Object e = it.next();
      if (e instanceof Alias)
        same.add(new Object[] {((NamedExpression) e).exprId(),
            IcebergPyRule.ids(((Expression) (Object) ((Alias) e).child()).references())});
    }
  }
  private static void columns(Union union, List same) {
    scala.collection.Iterator children = union.children().iterator();
    while (children.hasNext()) {
      scala.collection.Iterator named = union.output().iterator();
      scala.collection.Iterator columns = ((LogicalPlan) children.next()).output().iterator();
      while (named.hasNext() && columns.hasNext()) {
        Set one = new HashSet();
        one.add(((Attribute) columns.next()).exprId());
        same.add(new Object[] {((Attribute) named.next()).exprId(), one});
      }
    }
  }
}
