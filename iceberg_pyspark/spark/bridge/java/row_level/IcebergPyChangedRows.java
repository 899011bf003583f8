import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CaseWhen;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.KnownNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.types.DataType;

/** Builds one plan of all rows that a row-level operation changes. */
class IcebergPyChangedRows {
  private final IcebergPyRowValues values;
  private final List changes, columns;
  /** For each change, the expressions of values whose names were resolved beforehand. */
  private final Map[] resolved;
  IcebergPyChangedRows(IcebergPyRowValues values, List changes, List columns) {
    this.values = values;
    this.changes = changes;
    this.columns = columns;
    resolved = new Map[changes.size()];
  }

  LogicalPlan of(LogicalPlan below) {
    for (int i = 0; i < changes.size(); i++) resolve(i);
    Expression fromSource = (Expression) IcebergPyRowValues.byName(below).get("__ice_source"),
               which = null;
    List branches = new ArrayList();
    for (int i = 0; i < changes.size(); i++) {
      Expression when = when(i, fromSource);
      if (i == 0 && when == null && changes.size() == 1) break;
      branches.add(
          new scala.Tuple2(when == null ? Literal$.MODULE$.apply(Boolean.TRUE) : when, number(i)));
    }
    if (!branches.isEmpty()) {
      Alias change = IcebergPyFrames.alias(
          new CaseWhen(IcebergPyBridge.seq(branches), scala.Option.empty()), "__ice_change");
      List output = new ArrayList(scala.jdk.javaapi.CollectionConverters.asJava(below.output()));
      output.add(change);
      which = (Expression) (Object) change.toAttribute();
      below = new Filter(new IsNotNull(which), new Project(IcebergPyBridge.seq(output), below));
    }
    List projections = new ArrayList();
    for (int i = 0; i < columns.size(); i++) {
      Map column = (Map) columns.get(i);
      DataType type = DataType.fromJson((String) column.get("type"));
      Expression value = value((List) column.get("cases"), which, type);
      if (!value.resolved() || !value.dataType().equals(type))
        value = new Cast(value, type, scala.Option.empty(), EvalMode.ANSI());
      projections.add(IcebergPyFrames.alias(value, (String) column.get("name")));
    }
    return new Project(IcebergPyBridge.seq(projections), below);
  }

  /** Resolve the values of a change whose names only one side of a join knows. */
  private void resolve(int change) {
    resolved[change] = new IdentityHashMap();
    String side = (String) ((Map) changes.get(change)).get("side");
    if (side == null) return;
    List all = new ArrayList();
    Object condition = ((Map) changes.get(change)).get("condition");
    if (condition != null) all.add(condition);
    for (int i = 0; i < columns.size(); i++) {
      Object one = ((List) ((Map) columns.get(i)).get("cases")).get(change);
      if (one != null && !isUnread(one)) all.add(one);
    }
    List expressions = values.resolve(all, side);
    for (int i = 0; i < all.size(); i++) resolved[change].put(all.get(i), expressions.get(i));
  }
  private Expression of(Object value, int change) {
    Expression expression = (Expression) resolved[change].get(value);
    return expression == null ? values.of(value) : expression;
  }
  /** Return whether the value is never read, so that any value will do. */
  private static boolean isUnread(Object value) {
    return value instanceof Map && "UnusedValue".equals(((Map) value).get("is"));
  }

  /** Return the condition of a change, or null if the change is for every row. */
  private Expression when(int number, Expression fromSource) {
    Map change = (Map) changes.get(number);
    Expression place = (Expression) values.rows.get("_pos"), when = null;
    String where = (String) change.get("where");
    if (where.equals("source"))
      when = new IsNull(place);
    else if (!where.equals("any"))
      when = new IsNotNull(place);
    if (where.equals("both") && fromSource != null) when = new And(when, new IsNotNull(fromSource));
    if (where.equals("target")) when = new And(when, new IsNull(fromSource));
    Object condition = change.get("condition");
    if (condition == null) return when;
    Expression matches = of(condition, number);
    return when == null ? matches : new And(when, matches);
  }

  private Expression value(List cases, Expression which, DataType type) {
    List distinct = new ArrayList();
    List whens = new ArrayList();
    boolean nulls = false, unread = false;
    for (int i = 0; i < cases.size(); i++) {
      Object one = cases.get(i);
      if (one == null || isUnread(one)) {
        nulls |= one == null;
        unread |= one != null;
        continue;
      }
      Expression value = of(one, i);
      Expression here = which == null ? null : new EqualTo(which, number(i));
      int index = 0;
      while (index < distinct.size() && !same((Expression) distinct.get(index), value)) index++;
      if (index < distinct.size())
        whens.set(index, new Or((Expression) whens.get(index), here));
      else {
        distinct.add(value);
        whens.add(here);
      }
    }
    if (distinct.isEmpty()) return new Literal(null, type);
    // of a row whose value is not read, other values are not computed: this may be an error
    int ofOthers = nulls ? -1 : unread ? columnOfTarget(distinct) : distinct.size() - 1;
    // the place of a row of the source alone is not read either: it is null in a join
    if (ofOthers == 0 && distinct.size() == 1) return (Expression) distinct.get(0);
    List branches = new ArrayList();
    boolean nullable = nulls;
    for (int i = 0; i < distinct.size(); i++) {
      Expression one = notNull((Expression) distinct.get(i));
      nullable |= !one.resolved() || one.nullable();
      distinct.set(i, one);
      if (i != ofOthers) branches.add(new scala.Tuple2(whens.get(i), one));
    }
    Object others = ofOthers >= 0 ? distinct.get(ofOthers) : nullable ? null : anyValue(type);
    return new CaseWhen(IcebergPyBridge.seq(branches), scala.Option.apply(others));
  }
  /** Return a value; a required column of the target has one in each row of the target. */
  private static Expression notNull(Expression value) {
    return value instanceof Attribute && value.resolved() && !value.nullable()
        ? new KnownNotNull(value)
        : value;
  }
  private int columnOfTarget(List all) {
    for (int i = 0; i < all.size(); i++)
      if (values.rows.containsValue(all.get(i))) return i;
    return -1;
  }
  /** Return a value that is not null, if Spark has one of the type. Java reserves the name. */
  private static Expression anyValue(DataType type) {
    try {
      return (Expression) Literal$.class.getMethod("default", new Class[] {DataType.class})
          .invoke(Literal$.MODULE$, new Object[] {type});
    } catch (ReflectiveOperationException e) {
      return new Literal(null, type);
    }
  }
  private static boolean same(Expression one, Expression other) {
    return one == other || one.resolved() && other.resolved() && one.semanticEquals(other);
  }

  private static Expression number(int i) { return Literal$.MODULE$.apply(Integer.valueOf(i)); }
}
