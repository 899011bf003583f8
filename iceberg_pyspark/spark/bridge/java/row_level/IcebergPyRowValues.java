import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.types.DataType;

/**
 * Expressions for the values that Python describes; bridge/call_arguments.py defines their kinds.
 */
class IcebergPyRowValues {
  private final Object session, frame, target, source;
  /** The target's columns by name. */
  final Map rows;

  /** For rows of `frame`, which combines the rows of the target and of a source (or null). */
  IcebergPyRowValues(Object session, Object frame, Object target, Object source) {
    this.session = session;
    this.frame = frame;
    this.target = target;
    this.source = source;
    rows = byName(IcebergPyFrames.plan(target));
  }
  static Map byName(LogicalPlan plan) {
    Map attributes = new HashMap();
    scala.collection.Iterator it = plan.output().iterator();
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next();
      attributes.put(a.name(), a);
    }
    return attributes;
  }

  /** Return the expression of a value, with unresolved names; columns are Spark's own. */
  Expression of(Object value) {
    if (value instanceof org.apache.spark.sql.Column)
      return IcebergPyFrames.expression(session, value);
    Map description = (Map) value;
    String is = (String) description.get("is");
    if (is.equals("Sql"))
      return IcebergPyFrames.expression(
          session, org.apache.spark.sql.functions.expr((String) description.get("text")));
    if (is.equals("StatementExpression"))
      return ((IcebergPyExpressions) description.get("expressions"))
          .get(((Number) description.get("number")).intValue());
    if (is.equals("TargetValue")) return (Expression) rows.get(description.get("name"));
    if (is.equals("SourceColumn"))
      return (Expression) (Object) ((org.apache.spark.sql.classic.Dataset) source)
          .resolve((String) description.get("name"));
    if (is.equals("Number"))
      return Literal$.MODULE$.apply(
          Integer.valueOf(((Number) description.get("value")).intValue()));
    if (is.equals("Cast"))
      return new Cast(of(description.get("value")),
          DataType.fromJson((String) description.get("type")), scala.Option.empty(),
          EvalMode.ANSI());
    throw new IllegalArgumentException("a value of kind " + is);
  }

  /**
   * Resolve the names of values to ids, which keep their meaning in a join. With the side "source"
   * or "target", names belong only to this side; with null, to the frame.
   */
  List resolve(List values, String side) {
    List all = new ArrayList(), aliases = new ArrayList();
    boolean areResolved = true;
    for (int i = 0; i < values.size(); i++) {
      Expression one = of(values.get(i));
      areResolved &= one.resolved();
      all.add(one);
      aliases.add(IcebergPyFrames.alias(one, "c" + i));
    }
    if (areResolved) return all;
    all.clear();
    Object below = side == null ? frame : side.equals("source") ? source : target;
    scala.collection.Iterator it =
        ((Project) IcebergPyFrames.plan(IcebergPyFrames.frame(
             session, new Project(IcebergPyBridge.seq(aliases), IcebergPyFrames.plan(below)))))
            .projectList()
            .iterator();
    while (it.hasNext()) {
      Object one = it.next();
      all.add(one instanceof Alias ? (Object) ((Alias) one).child() : one);
    }
    return all;
  }
}
