import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.optimizer.ConstantFolding$;
import org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.jdk.javaapi.CollectionConverters;

/** Statements that change rows, and the rows of their tables. */
public class IcebergPyRowLevel {
  /**
   * Return a table's rows as a DataFrame, at the state of `definition`. Columns that
   * `statement` also has keep their ids in it; it may be null.
   */
  public Object tableFrame(Object session, String definition, IcebergPyStatement statement) {
    LogicalPlan plan = DataSourceV2Relation$.MODULE$.create(
        new IcebergPyTable(new IcebergPyTableDefinition(IcebergPyBridge.values(definition))),
        // Spark looks up the functions of the partitioning in this catalog
        scala.Option.apply(IcebergPyFunctions.INSTANCE), scala.Option.empty());
    if (statement != null) plan = withIdsOf(plan, statement.columns);
    return IcebergPyFrames.frame(session, plan);
  }
  private static LogicalPlan withIdsOf(
      LogicalPlan plan, scala.collection.immutable.Seq statementColumns) {
    Map byName = new HashMap();
    scala.collection.Iterator it = statementColumns.iterator();
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next();
      byName.put(a.name(), a);
    }
    List columns = new ArrayList();
    it = plan.output().iterator();
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next();
      Attribute column = (Attribute) byName.get(a.name());
      columns.add(
          column == null ? a : a.withExprId(column.exprId()).withQualifier(column.qualifier()));
    }
    // aliases of a thousand columns took Spark's constraints a tenth of a statement's time
    List arguments = new ArrayList(CollectionConverters.asJava(plan.productIterator().toSeq()));
    arguments.set(1, IcebergPyBridge.seq(columns));
    return (LogicalPlan) plan.makeCopy(arguments.toArray());
  }

  /** Return the rows of a frame that fulfil a condition. */
  public Object where(Object session, Object frame, Object condition) {
    return IcebergPyFrames.frame(session,
        new Filter(IcebergPyFrames.expression(session, condition), IcebergPyFrames.plan(frame)));
  }

  /**
   * Return the session's settings for writes, and the application's entries in a snapshot summary.
   */
  public String environment() { return IcebergPyBridge.json(IcebergPyCommand.environment()); }

  /** Describe the condition of a plan that begins with a filter; null for any other plan. */
  public String condition(Object analysedPlan) {
    LogicalPlan plan = (LogicalPlan) analysedPlan;
    if (!(plan instanceof Filter)) return null;
    plan = (LogicalPlan) ((Rule) ConstantFolding$.MODULE$).apply(plan);
    plan = (LogicalPlan) ((Rule) UnwrapCastInBinaryComparison$.MODULE$).apply(plan);
    return IcebergPyBridge.json(
        IcebergPyFilters.describe((Expression) (Object) ((Filter) plan).condition()));
  }

  /** Return the parts of a statement that changes rows. */
  public IcebergPyStatement statement(Object plan) {
    return new IcebergPyStatement((LogicalPlan) plan);
  }

  /** Return the handles of the tables that a frame reads, as Spark has analysed it. */
  public String referencedTables(Object frame) {
    return IcebergPyBridge.json(IcebergPyReferencedTables.handlesOf(IcebergPyFrames.plan(frame)));
  }

  /**
   * Return a frame with the tables and cached rows that Spark reads if it executes the frame now.
   * Spark loads none of these tables again, whatever is made of the result.
   */
  public Object pin(Object session, Object frame) {
    return IcebergPyFrames.frame(session,
        IcebergPyReferencedTables.pin(
            ((org.apache.spark.sql.classic.Dataset) frame).queryExecution().withCachedData()));
  }

  /** Return whether a plan reads an Iceberg table. */
  public boolean readsIceberg(Object plan) { return reads((LogicalPlan) plan); }
  static boolean reads(LogicalPlan plan) {
    List plans = new ArrayList();
    plans.add(plan);
    plans.addAll(scala.jdk.javaapi.CollectionConverters.asJava(plan.subqueriesAll()));
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
