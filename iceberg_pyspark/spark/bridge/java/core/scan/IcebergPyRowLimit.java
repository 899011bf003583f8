import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Descending$;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;

/** How many rows of a plan are enough: any rows, or the first ones by a column. */
class IcebergPyRowLimit {
  final Integer rows;
  private final ExprId column;
  private final boolean isDescending;
  private final boolean hasNullsFirst;
  private IcebergPyRowLimit(
      Integer rows, ExprId column, boolean isDescending, boolean hasNullsFirst) {
    this.rows = rows;
    this.column = column;
    this.isDescending = isDescending;
    this.hasNullsFirst = hasNullsFirst;
  }
  boolean isOrdered() { return column != null; }

  /** Return the limit of the rows of a plan's child, given that of the plan's; null for none. */
  static IcebergPyRowLimit below(LogicalPlan plan, IcebergPyRowLimit limit) {
    if (plan instanceof LocalLimit) {
      Object rows = ((LocalLimit) plan).limitExpr();
      return rows instanceof Literal && ((Literal) rows).value() instanceof Integer
          ? new IcebergPyRowLimit((Integer) ((Literal) rows).value(), null, false, false)
          : null;
    }
    if (limit == null) return null;
    if (plan instanceof Project) return limit.isOrdered() ? limit.below((Project) plan) : limit;
    return plan instanceof Sort && !limit.isOrdered() ? limit.below((Sort) plan) : null;
  }

  /** Only the first column matters: rows that are equal in it may all be needed. */
  private IcebergPyRowLimit below(Sort plan) {
    SortOrder first = (SortOrder) plan.order().head();
    Object by = first.child();
    if (!plan.global() || !(by instanceof Attribute)) return null;
    return new IcebergPyRowLimit(rows, ((Attribute) by).exprId(),
        first.direction() == (Object) Descending$.MODULE$,
        first.nullOrdering() == (Object) NullsFirst$.MODULE$);
  }
  private IcebergPyRowLimit below(Project plan) {
    scala.collection.Iterator it = plan.projectList().iterator();
    while (it.hasNext()) {
      NamedExpression value = (NamedExpression) it.next();
      if (!value.exprId().equals(column)) continue;
      Object source = value instanceof Alias ? ((Alias) value).child() : (Object) value;
      if (!(source instanceof Attribute)) return null;
      ExprId id = ((Attribute) source).exprId();
      return new IcebergPyRowLimit(rows, id, isDescending, hasNullsFirst);
    }
    return null;
  }

  /** Describe the order of a plan's rows to Python; null for any rows. */
  Map order(LogicalPlan plan) {
    if (!isOrdered()) return null;
    scala.collection.Iterator it = plan.output().iterator();
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next();
      if (a.exprId().equals(column))
        return IcebergPyRequests.rowOrder(a.name(), isDescending, hasNullsFirst);
    }
    throw new IllegalStateException("the plan has no column " + column);
  }
}
