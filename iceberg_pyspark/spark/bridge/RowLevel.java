// What row-level operations build their plans with; compiled together with Bridge.java, and as free of Iceberg's rules.

import com.fasterxml.jackson.core.JsonProcessingException;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.optimizer.ConstantFolding$;
import org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.*;

public class IcebergPyRowLevel {
  /** A table's rows as a DataFrame, at the state its facts name; where `like` has a column of a name, with the id it has there. */
  public Object tableFrame(Object session, String facts, Object like) throws JsonProcessingException {
    LogicalPlan plan = DataSourceV2Relation$.MODULE$.create(new IcebergPyTable((Map) IcebergPyBridge.JSON.readValue(facts, Map.class)), scala.Option.empty(), scala.Option.empty());
    if (like != null) plan = named(plan, (scala.collection.immutable.Seq) like);
    return frame(session, plan);
  }
  private static LogicalPlan named(LogicalPlan plan, scala.collection.immutable.Seq like) {
    Map known = new HashMap();
    scala.collection.Iterator it = like.iterator();
    while (it.hasNext()) { Attribute a = (Attribute) it.next(); known.put(a.name(), a); }
    List columns = new ArrayList();
    it = plan.output().iterator();
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next(); Attribute wanted = (Attribute) known.get(a.name());
      columns.add(wanted == null ? (Object) a : new Alias((Expression) (Object) a, a.name(), wanted.exprId(), wanted.qualifier(), scala.Option.empty(), IcebergPyBridge.seq(new ArrayList())));
    }
    return new Project(IcebergPyBridge.seq(columns), plan);
  }

  /** A DataFrame of a plan. */
  public Object frame(Object session, Object plan) {
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows((org.apache.spark.sql.classic.SparkSession) session, (LogicalPlan) plan);
  }

  /** A catalyst expression as a column. */
  public Object column(Object expression) { return org.apache.spark.sql.classic.ExpressionUtils.column((Expression) expression); }

  /** The columns that were selected last, as what they are made of. */
  public List selected(Object analysed) {
    List columns = new ArrayList();
    scala.collection.Iterator it = ((Project) analysed).projectList().iterator();
    while (it.hasNext()) { Object one = it.next(); columns.add(column(one instanceof Alias ? (Object) ((Alias) one).child() : one)); }
    return columns;
  }

  /** A column converted to a type, an error where a value does not fit, whatever the session says of ANSI. */
  public Object stored(Object column, String type) {
    Expression value = org.apache.spark.sql.classic.ExpressionUtils.expression((org.apache.spark.sql.Column) column);
    return column(new Cast(value, org.apache.spark.sql.types.DataType.fromJson(type), scala.Option.empty(), EvalMode.ANSI()));
  }
  /** Whether Spark would store values of a type in a column of another. */
  public boolean canStore(String from, String to) {
    return Cast$.MODULE$.canANSIStoreAssign(org.apache.spark.sql.types.DataType.fromJson(from), org.apache.spark.sql.types.DataType.fromJson(to));
  }

  /** The condition of a plan that begins with a filter, described; null if there is more to it than its rows tell. */
  public String condition(Object analysed) throws JsonProcessingException {
    LogicalPlan plan = (LogicalPlan) analysed;
    if (!(plan instanceof Filter)) return null;
    plan = (LogicalPlan) ((Rule) ConstantFolding$.MODULE$).apply(plan);
    plan = (LogicalPlan) ((Rule) UnwrapCastInBinaryComparison$.MODULE$).apply(plan);
    return IcebergPyBridge.JSON.writeValueAsString(IcebergPyFilters.describe((Expression) (Object) ((Filter) plan).condition()));
  }
}
