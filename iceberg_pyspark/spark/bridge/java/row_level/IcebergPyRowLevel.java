import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.optimizer.ConstantFolding$;
import org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison$;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.DeleteAction;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.InsertAction;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeAction;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.UpdateAction;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/** Statements that change rows, taken apart for Python. */
public class IcebergPyRowLevel {
  /**
   * A table's rows as a DataFrame, at the state its facts name; where `like` has a column of a
   * name, with the id it has there.
   */
  public Object tableFrame(Object session, String facts, Object like) {
    LogicalPlan plan = DataSourceV2Relation$.MODULE$.create(
        new IcebergPyTable(new IcebergPyTableFacts(IcebergPyBridge.values(facts))),
        scala.Option.empty(), scala.Option.empty());
    if (like != null) plan = named(plan, (scala.collection.immutable.Seq) like);
    return frame(session, plan);
  }
  private static LogicalPlan named(LogicalPlan plan, scala.collection.immutable.Seq like) {
    Map known = new HashMap();
    scala.collection.Iterator it = like.iterator();
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next();
      known.put(a.name(), a);
    }
    List columns = new ArrayList();
    it = plan.output().iterator();
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next();
      Attribute wanted = (Attribute) known.get(a.name());
      columns.add(wanted == null
              ? (Object) a
              : new Alias((Expression) (Object) a, a.name(), wanted.exprId(), wanted.qualifier(),
                    scala.Option.empty(), IcebergPyBridge.seq(new ArrayList())));
    }
    return new Project(IcebergPyBridge.seq(columns), plan);
  }

  /** A DataFrame of a plan. */
  public Object frame(Object session, Object plan) {
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(
        (org.apache.spark.sql.classic.SparkSession) session, (LogicalPlan) plan);
  }

  /** The session's settings for writes, and what a snapshot says of the application. */
  public String surroundings() { return IcebergPyBridge.json(IcebergPyCommand.surroundings()); }

  /** A catalyst expression as a column. */
  public Object column(Object expression) {
    return org.apache.spark.sql.classic.ExpressionUtils.column((Expression) expression);
  }

  /** The columns that were selected last, as what they are made of. */
  public List selected(Object analysed) {
    List columns = new ArrayList();
    scala.collection.Iterator it = ((Project) analysed).projectList().iterator();
    while (it.hasNext()) {
      Object one = it.next();
      columns.add(column(one instanceof Alias ? (Object) ((Alias) one).child() : one));
    }
    return columns;
  }

  /**
   * A column converted to a type, an error where a value does not fit, whatever the session says
   * of ANSI.
   */
  public Object stored(Object column, String type) {
    Expression value = org.apache.spark.sql.classic.ExpressionUtils.expression(
        (org.apache.spark.sql.Column) column);
    return column(new Cast(value, org.apache.spark.sql.types.DataType.fromJson(type),
        scala.Option.empty(), EvalMode.ANSI()));
  }
  /** Whether Spark would store values of a type in a column of another. */
  public boolean canStore(String from, String to) {
    return Cast$.MODULE$.canANSIStoreAssign(org.apache.spark.sql.types.DataType.fromJson(from),
        org.apache.spark.sql.types.DataType.fromJson(to));
  }

  /**
   * The condition of a plan that begins with a filter, described; null if there is more to it than
   * its rows tell.
   */
  public String condition(Object analysed) {
    LogicalPlan plan = (LogicalPlan) analysed;
    if (!(plan instanceof Filter)) return null;
    plan = (LogicalPlan) ((Rule) ConstantFolding$.MODULE$).apply(plan);
    plan = (LogicalPlan) ((Rule) UnwrapCastInBinaryComparison$.MODULE$).apply(plan);
    return IcebergPyBridge.json(
        IcebergPyFilters.describe((Expression) (Object) ((Filter) plan).condition()));
  }

  /** A statement taken apart: names, plans, and columns for its expressions. */
  public Map statement(Object plan) {
    Map out = new HashMap();
    LogicalPlan target;
    List reads = new ArrayList();
    if (plan instanceof DeleteFromTable) {
      target = (LogicalPlan) (Object) ((DeleteFromTable) plan).table();
      out.put("kind", "delete");
      out.put("condition", column(((DeleteFromTable) plan).condition()));
    } else if (plan instanceof UpdateTable) {
      UpdateTable update = (UpdateTable) plan;
      target = (LogicalPlan) (Object) update.table();
      out.put("kind", "update");
      out.put("condition", optional(update.condition()));
      out.put("assignments", assignments(update.assignments()));
    } else {
      MergeIntoTable merge = (MergeIntoTable) plan;
      target = (LogicalPlan) (Object) merge.targetTable();
      reads.add(merge.sourceTable());
      out.put("kind", "merge");
      out.put("adds_columns", Boolean.valueOf(merge.withSchemaEvolution()));
      out.put("condition", column(merge.mergeCondition()));
      out.put("source", merge.sourceTable());
      out.put("matched", clauses(merge.matchedActions()));
      out.put("not_matched", clauses(merge.notMatchedActions()));
      out.put("not_matched_by_source", clauses(merge.notMatchedBySourceActions()));
    }
    boolean ours = !reads.isEmpty() && readsIceberg(reads.get(0));
    // plans of subqueries are optimized: rows that Python reads for us look like anyone's
    List subqueries =
        scala.jdk.javaapi.CollectionConverters.asJava(((LogicalPlan) plan).subqueriesAll());
    for (int i = 0; i < subqueries.size(); i++)
      ours |= readsIceberg(subqueries.get(i)) || hasRows((LogicalPlan) subqueries.get(i));
    out.put("reads_iceberg", Boolean.valueOf(ours));
    out.put("columns", target.output());
    LogicalPlan relation = target;
    while (
        !(relation instanceof DataSourceV2ScanRelation || relation instanceof DataSourceV2Relation))
      relation = (LogicalPlan) relation.children().head();
    if (relation instanceof DataSourceV2ScanRelation)
      relation = (LogicalPlan) (Object) ((DataSourceV2ScanRelation) relation).relation();
    out.put("handle", ((IcebergPyTable) ((DataSourceV2Relation) relation).table()).handle);
    return out;
  }
  private Object optional(scala.Option condition) {
    return condition.isEmpty() ? null : column(condition.get());
  }

  /** [path, value] of each. */
  private List assignments(scala.collection.immutable.Seq all) {
    List out = new ArrayList();
    scala.collection.Iterator it = all.iterator();
    while (it.hasNext()) {
      Assignment one = (Assignment) it.next();
      LinkedList path = new LinkedList();
      Expression key = (Expression) (Object) one.key();
      while (key instanceof GetStructField) {
        path.addFirst(((GetStructField) key).extractFieldName());
        key = (Expression) (Object) ((GetStructField) key).child();
      }
      path.addFirst(((Attribute) (Object) key).name());
      out.add(IcebergPyBridge.list(new Object[] {path, column(one.value())}));
    }
    return out;
  }
  /** [what, condition, assignments] of each. */
  private List clauses(scala.collection.immutable.Seq all) {
    List out = new ArrayList();
    scala.collection.Iterator it = all.iterator();
    while (it.hasNext()) {
      MergeAction action = (MergeAction) it.next();
      String what = "delete";
      List assigned = new ArrayList();
      if (action instanceof UpdateAction) {
        what = "update";
        assigned = assignments(((UpdateAction) action).assignments());
      } else if (action instanceof InsertAction) {
        what = "insert";
        assigned = assignments(((InsertAction) action).assignments());
      } else if (!(action instanceof DeleteAction))
        throw new IllegalStateException("Spark has not resolved " + action);
      out.add(IcebergPyBridge.list(new Object[] {what, optional(action.condition()), assigned}));
    }
    return out;
  }

  private static boolean hasRows(LogicalPlan plan) {
    scala.collection.Iterator it = plan.collectLeaves().iterator();
    while (it.hasNext())
      if (it.next() instanceof LogicalRDD) return true;
    return false;
  }
  /** Whether a plan reads a table of ours. */
  public boolean readsIceberg(Object plan) {
    List plans = new ArrayList();
    plans.add(plan);
    plans.addAll(
        scala.jdk.javaapi.CollectionConverters.asJava(((LogicalPlan) plan).subqueriesAll()));
    for (int i = 0; i < plans.size(); i++) {
      scala.collection.Iterator it = ((LogicalPlan) plans.get(i)).collectLeaves().iterator();
      while (it.hasNext()) {
        Object leaf = it.next();
        Object relation = leaf instanceof DataSourceV2ScanRelation
            ? (Object) ((DataSourceV2ScanRelation) leaf).relation()
            : leaf;
        if (!(relation instanceof DataSourceV2Relation)) continue;
        Object table = ((DataSourceV2Relation) relation).table();
        if (table instanceof IcebergPyTable || table instanceof IcebergPyFiles) return true;
      }
    }
    return false;
  }
}
