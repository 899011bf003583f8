import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.DynamicPruning;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/**
 * Finds the columns by which a plan may need its rows clustered: the columns of groups, windows,
 * and joins with rows that may be grouped too. A scan that is grouped by other columns saves no
 * shuffle, but has more tasks, many of which a runtime filter leaves without a file. Spark shuffles
 * rows for a group or a join by an expression of columns, whatever the scan's groups are.
 */
class IcebergPyClustering {
  private final Set clusteringIds = new HashSet();
  /** The ids of columns by which rows may be grouped. */
  private final Set groupedIds = new HashSet();
  /** Pairs of a column's id and the id of the column that it renames, in a set. */
  private final List equalColumns = new ArrayList();
  /** The columns that the sides of an equality in a join's condition are; empty for expressions. */
  private final List equations = new ArrayList();
  /** Whether Spark can shuffle one side of a join into the groups of the other side. */
  private final boolean oneSided;
  private IcebergPyClustering(boolean oneSided) { this.oneSided = oneSided; }

  /** Return the ids of these columns at every level of the plan. */
  static Set of(LogicalPlan plan) {
    IcebergPyClustering clustering = new IcebergPyClustering(IcebergPyScan.shufflesToGroups());
    // Spark optimizes a subquery separately, and later joins its rows by their columns
    if (plan instanceof Subquery)
      clustering.clusteringIds.addAll(IcebergPyRule.ids(plan.outputSet()));
    clustering.collect(plan);
    clustering.joins();
    clustering.follow(clustering.clusteringIds, false);
    return clustering.clusteringIds;
  }

  private void collect(LogicalPlan plan) {
    if (plan instanceof Aggregate) {
      references(((Aggregate) plan).groupingExpressions());
      names(((Aggregate) plan).aggregateExpressions());
    } else if (plan instanceof Project) {
      names(((Project) plan).projectList());
    } else if (plan instanceof Union) {
      columns((Union) plan);
    } else if (plan.children().isEmpty()) {
      leaf(plan);
    } else if (plan instanceof Join && !oneSided && plan.subqueries().isEmpty()) {
      if (((Join) plan).condition().isDefined())
        equations((Expression) ((Join) plan).condition().get());
    } else if (plan instanceof Filter) {
      subqueries((Expression) (Object) ((Filter) plan).condition());
    } else if (!plan.subqueries().isEmpty()
        || !(plan instanceof Sort || plan instanceof LocalLimit || plan instanceof GlobalLimit)) {
      clusteringIds.addAll(IcebergPyRule.ids(plan.references()));
    }
    scala.collection.Iterator children = plan.children().iterator();
    while (children.hasNext()) collect((LogicalPlan) children.next());
  }

  /** Spark later turns subqueries into joins, but not the subqueries of dynamic pruning. */
  private void subqueries(Expression condition) {
    List all = IcebergPyScanParts.conjuncts(condition);
    for (int i = 0; i < all.size(); i++) {
      Expression e = (Expression) all.get(i);
      if (!(e instanceof DynamicPruning) && SubqueryExpression$.MODULE$.hasSubquery(e))
        clusteringIds.addAll(IcebergPyRule.ids(e.references()));
    }
  }

  /** A leaf that may have groups, such as cached rows, may be grouped by any column. */
  private void leaf(LogicalPlan plan) {
    if (plan instanceof DataSourceV2ScanRelation) {
      scala.Option keys = ((DataSourceV2ScanRelation) plan).keyGroupedPartitioning();
      if (keys.isDefined()) {
        scala.collection.Iterator it = ((scala.collection.immutable.Seq) keys.get()).iterator();
        while (it.hasNext())
          groupedIds.addAll(IcebergPyRule.ids(((Expression) it.next()).references()));
      }
    } else if (!(plan instanceof LocalRelation || plan instanceof LogicalRelation
                   || plan instanceof Range))
      groupedIds.addAll(IcebergPyRule.ids(plan.outputSet()));
  }

  private void equations(Expression condition) {
    List all = IcebergPyScanParts.conjuncts(condition);
    for (int i = 0; i < all.size(); i++) {
      Expression e = (Expression) all.get(i);
      if (!(e instanceof EqualTo || e instanceof EqualNullSafe)) continue;
      Set[] sides = new Set[2];
      for (int side = 0; side < 2; side++) sides[side] = idOf(e.children().apply(side));
      equations.add(sides);
    }
  }
  /** A join saves both shuffles if both sides are grouped, and none if only one side is. */
  private void joins() {
    follow(groupedIds, true);
    for (int i = 0; i < equations.size(); i++) {
      Set[] sides = (Set[]) equations.get(i);
      for (int side = 0; side < 2; side++)
        if (!Collections.disjoint(groupedIds, sides[side])) clusteringIds.addAll(sides[1 - side]);
    }
  }
  /**
   * Add the columns with the same values: above the columns of the set, or below them.
   * Repeat until nothing changes, because the columns of a union are not ordered from top to
   * bottom.
   */
  private void follow(Set columns, boolean upwards) {
    for (boolean more = true; more;) {
      more = false;
      for (int i = 0; i < equalColumns.size(); i++) {
        Object[] pair = (Object[]) equalColumns.get(i);
        if (upwards && !Collections.disjoint(columns, (Set) pair[1])) more |= columns.add(pair[0]);
        if (!upwards && columns.contains(pair[0])) more |= columns.addAll((Set) pair[1]);
      }
    }
  }

  private void references(scala.collection.immutable.Seq expressions) {
    scala.collection.Iterator it = expressions.iterator();
    while (it.hasNext()) clusteringIds.addAll(idOf(it.next()));
  }
  /** Return the id of a column, in a set; an empty set for any other expression. */
  private static Set idOf(Object e) {
    return e instanceof Attribute ? Collections.singleton(((Attribute) e).exprId())
                                  : Collections.emptySet();
  }
  private void names(scala.collection.immutable.Seq expressions) {
    scala.collection.Iterator it = expressions.iterator();
    while (it.hasNext()) {
      Object e = it.next();
      if (e instanceof Alias)
        equalColumns.add(new Object[] {((NamedExpression) e).exprId(), idOf(((Alias) e).child())});
    }
  }
  private void columns(Union union) {
    scala.collection.Iterator children = union.children().iterator();
    while (children.hasNext()) {
      scala.collection.Iterator named = union.output().iterator();
      scala.collection.Iterator columns = ((LogicalPlan) children.next()).output().iterator();
      while (named.hasNext() && columns.hasNext()) {
        Set one = new HashSet();
        one.add(((Attribute) columns.next()).exprId());
        equalColumns.add(new Object[] {((Attribute) named.next()).exprId(), one});
      }
    }
  }
}
