import com.fasterxml.jackson.core.JsonProcessingException;
import java.util.ArrayList;
import java.util.HashMap;
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
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.types.DataType;

/** The rows that a row-level operation changes, as one plan made at once. */
public class IcebergPyChanges {
  private Object session;
  private List given;
  private Map rows;

  /** The types of columns of a frame's rows. */
  public String types(Object session, Object frame, List columns) throws JsonProcessingException {
    List types = new ArrayList();
    List found = meant(session, frame, columns);
    for (int i = 0; i < found.size(); i++) types.add(((Expression) found.get(i)).dataType().json());
    return IcebergPyBridge.JSON.writeValueAsString(types);
  }

  /**
   * Columns of a frame's rows by ids instead of names, so that they mean the same in a join; null
   * where they are so already.
   */
  public List resolved(Object session, Object frame, List columns) {
    boolean known = true;
    List out = new ArrayList();
    for (int i = 0; i < columns.size(); i++)
      known &= IcebergPyFrames.expression(session, columns.get(i)).resolved();
    if (known) return null;
    List found = meant(session, frame, columns);
    for (int i = 0; i < found.size(); i++)
      out.add(IcebergPyFrames.column((Expression) found.get(i)));
    return out;
  }

  private static List meant(Object session, Object frame, List columns) {
    List all = new ArrayList();
    List named = new ArrayList();
    boolean known = true;
    for (int i = 0; i < columns.size(); i++) {
      Expression one = IcebergPyFrames.expression(session, columns.get(i));
      known &= one.resolved();
      all.add(one);
      named.add(IcebergPyFrames.alias(one, "c" + i));
    }
    if (known) return all;
    all.clear();
    scala.collection.Iterator it =
        ((Project) IcebergPyFrames.plan(IcebergPyFrames.frame(
             session, new Project(IcebergPyBridge.seq(named), IcebergPyFrames.plan(frame)))))
            .projectList()
            .iterator();
    while (it.hasNext()) {
      Object one = it.next();
      all.add(one instanceof Alias ? (Object) ((Alias) one).child() : one);
    }
    return all;
  }

  /**
   * For each row of a frame the first change that is about it: `described` has the changes, each
   * with the side its rows come from and the number of its condition, and the columns to make, each
   * with what it is after each change: kept of `rows`, the number of a given column, a number,
   * null, or of no matter.
   */
  public Object changed(Object session, Object frame, Object rows, String described, List given)
      throws JsonProcessingException {
    IcebergPyChanges made = new IcebergPyChanges();
    made.session = session;
    made.given = given;
    made.rows = byName(IcebergPyFrames.plan(rows));
    return made.of(frame, described);
  }
  private Object of(Object frame, String described) throws JsonProcessingException {
    Map said = (Map) IcebergPyBridge.JSON.readValue(described, Map.class);
    List changes = (List) said.get("changes"), columns = (List) said.get("columns");
    LogicalPlan below = IcebergPyFrames.plan(frame);
    Expression fromSource = (Expression) byName(below).get("__ice_source"), which = null;
    List branches = new ArrayList();
    for (int i = 0; i < changes.size(); i++) {
      Expression when = when((Map) changes.get(i), fromSource);
      if (i == 0 && when == null && changes.size() == 1) break;
      branches.add(
          new scala.Tuple2(when == null ? Literal$.MODULE$.apply(Boolean.TRUE) : when, number(i)));
    }
    if (!branches.isEmpty()) {
      Alias chosen = IcebergPyFrames.alias(
          new CaseWhen(IcebergPyBridge.seq(branches), scala.Option.empty()), "__ice_change");
      List output = new ArrayList(scala.jdk.javaapi.CollectionConverters.asJava(below.output()));
      output.add(chosen);
      which = (Expression) (Object) chosen.toAttribute();
      below = new Filter(new IsNotNull(which), new Project(IcebergPyBridge.seq(output), below));
    }
    List made = new ArrayList();
    for (int i = 0; i < columns.size(); i++) {
      Map column = (Map) columns.get(i);
      DataType type = DataType.fromJson((String) column.get("type"));
      Expression value = value((List) column.get("cases"), which, type);
      if (!value.resolved() || !value.dataType().equals(type))
        value = new Cast(value, type, scala.Option.empty(), EvalMode.ANSI());
      made.add(IcebergPyFrames.alias(value, (String) column.get("name")));
    }
    return IcebergPyFrames.frame(session, new Project(IcebergPyBridge.seq(made), below));
  }

  /** Null: always. */
  private Expression when(Map change, Expression fromSource) {
    Expression place = (Expression) rows.get("_pos"), when = null;
    String where = (String) change.get("where");
    if (where.equals("source"))
      when = new IsNull(place);
    else if (!where.equals("any"))
      when = new IsNotNull(place);
    if (where.equals("both") && fromSource != null) when = new And(when, new IsNotNull(fromSource));
    if (where.equals("target")) when = new And(when, new IsNull(fromSource));
    Number condition = (Number) change.get("condition");
    if (condition == null) return when;
    Expression asked = IcebergPyFrames.expression(session, given.get(condition.intValue()));
    return when == null ? asked : new And(when, asked);
  }

  private Expression value(List cases, Expression which, DataType type) {
    List values = new ArrayList();
    List whens = new ArrayList();
    boolean nulls = false;
    for (int i = 0; i < cases.size(); i++) {
      List one = (List) cases.get(i);
      if (one == null) {
        nulls = true;
        continue;
      }
      if (one.get(0).equals("any")) continue;
      Expression value = one.get(0).equals("kept") ? (Expression) rows.get(one.get(1))
          : one.get(0).equals("int")
          ? number(((Number) one.get(1)).intValue())
          : IcebergPyFrames.expression(session, given.get(((Number) one.get(1)).intValue()));
      Expression here = which == null ? null : new EqualTo(which, number(i));
      int known = 0;
      while (known < values.size() && !same((Expression) values.get(known), value)) known++;
      if (known < values.size())
        whens.set(known, new Or((Expression) whens.get(known), here));
      else {
        values.add(value);
        whens.add(here);
      }
    }
    if (values.isEmpty()) return new Literal(null, type);
    if (values.size() == 1 && !nulls) return (Expression) values.get(0);
    List branches = new ArrayList();
    for (int i = 0; i < values.size(); i++)
      branches.add(new scala.Tuple2(whens.get(i), values.get(i)));
    return new CaseWhen(IcebergPyBridge.seq(branches), scala.Option.empty());
  }
  private static boolean same(Expression one, Expression other) {
    return one == other || one.resolved() && other.resolved() && one.semanticEquals(other);
  }

  private static Map byName(LogicalPlan plan) {
    Map found = new HashMap();
    scala.collection.Iterator it = plan.output().iterator();
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next();
      found.put(a.name(), a);
    }
    return found;
  }
  private static Expression number(int i) { return Literal$.MODULE$.apply(Integer.valueOf(i)); }
}
