import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/** The Iceberg tables that a DELETE, UPDATE or MERGE reads besides its target. */
class IcebergPyReferencedTables extends scala.runtime.AbstractPartialFunction {
  /**
   * Return the handles of the tables that the statement which Spark executes in this thread reads.
   *
   * The optimized plan does not name them all: metadata may give the rows of a subquery, and an
   * empty table leaves no relation. The analysed plan names them before Spark has loaded them
   * again.
   */
  static List handles() {
    List out = new ArrayList();
    LogicalPlan plan = analysed();
    if (plan == null) return out;
    LogicalPlan statement = statementIn(plan);
    collect(plan, statement == null ? null : IcebergPyCommand.target(statement), out);
    return out;
  }
  /** Return the analysed plan that Spark executes in this thread, or null if Spark keeps none. */
  static LogicalPlan analysed() {
    String id =
        IcebergPySessions.active().sparkContext().getLocalProperty(SQLExecution.EXECUTION_ID_KEY());
    QueryExecution execution =
        id == null ? null : SQLExecution.getQueryExecution(Long.parseLong(id));
    return execution == null ? null : execution.withCachedData();
  }

  /** Return the handles of the tables that a plan reads, also those of cached rows. */
  static List handlesOf(LogicalPlan plan) {
    List out = new ArrayList();
    collect(plan, null, out);
    return out;
  }

  /**
   * Return the plan with the tables as they are: without their names, Spark does not load them
   * again when it executes a plan that is made of this one.
   */
  static LogicalPlan pin(LogicalPlan plan) {
    return (LogicalPlan) (Object) plan.transformWithSubqueries(new IcebergPyReferencedTables());
  }
  public boolean isDefinedAt(Object plan) {
    return plan instanceof DataSourceV2Relation
        && ((DataSourceV2Relation) plan).identifier().isDefined();
  }
  public Object applyOrElse(Object plan, scala.Function1 otherwise) {
    if (!isDefinedAt(plan)) return otherwise.apply(plan);
    DataSourceV2Relation relation = (DataSourceV2Relation) plan;
    Object name = relation.identifier();
    // releases differ in what follows the name
    List arguments = new ArrayList(
        scala.jdk.javaapi.CollectionConverters.asJava(relation.productIterator().toSeq()));
    for (int i = 0; i < arguments.size(); i++)
      if (arguments.get(i) == name) arguments.set(i, scala.Option.empty());
    return relation.makeCopy(arguments.toArray());
  }

  /** Return the DELETE, UPDATE or MERGE of a plan, or null. */
  static LogicalPlan statementIn(LogicalPlan plan) {
    // the last child of a statement with common table expressions is the statement itself
    while (!(plan instanceof DeleteFromTable || plan instanceof UpdateTable
        || plan instanceof MergeIntoTable)) {
      if (plan.children().isEmpty()) return null;
      plan = (LogicalPlan) plan.children().last();
    }
    return plan;
  }

  private static void collect(LogicalPlan root, Object target, List out) {
    List plans = new ArrayList();
    plans.add(root);
    plans.addAll(scala.jdk.javaapi.CollectionConverters.asJava(root.subqueriesAll()));
    for (int i = 0; i < plans.size(); i++) {
      scala.collection.Iterator it = ((LogicalPlan) plans.get(i)).collectLeaves().iterator();
      while (it.hasNext()) {
        Object leaf = it.next();
        if (leaf == target) continue;
        if (leaf instanceof InMemoryRelation)
          collect(((InMemoryRelation) leaf).cacheBuilder().logicalPlan(), null, out);
        if (!(leaf instanceof DataSourceV2Relation)) continue;
        Object table = ((DataSourceV2Relation) leaf).table();
        if (table instanceof IcebergPyTable) out.add(((IcebergPyTable) table).handle);
      }
    }
  }
}
