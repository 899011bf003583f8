import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.jdk.javaapi.CollectionConverters;

/** Statements that change an Iceberg table which Spark has cached. */
class IcebergPyCachedTargets {
  /** Return the statement on the table itself, if Spark has put the cached rows in its place. */
  static LogicalPlan withoutCache(LogicalPlan plan) {
    if (!(plan instanceof DeleteFromTable || plan instanceof UpdateTable
            || plan instanceof MergeIntoTable))
      return plan;
    List children = new ArrayList(CollectionConverters.asJava(plan.children()));
    LogicalPlan target = (LogicalPlan) children.get(0), uncached = table(target);
    if (uncached == target) return plan;
    children.set(0, uncached);
    return (LogicalPlan) plan.withNewChildren(IcebergPyBridge.seq(children));
  }

  private static LogicalPlan table(LogicalPlan target) {
    if (target instanceof SubqueryAlias) {
      LogicalPlan below = (LogicalPlan) target.children().head(), uncached = table(below);
      if (uncached == below) return target;
      List one = new ArrayList();
      one.add(uncached);
      return (LogicalPlan) target.withNewChildren(IcebergPyBridge.seq(one));
    }
    if (!(target instanceof InMemoryRelation)) return target;
    LogicalPlan cached = ((InMemoryRelation) target).cacheBuilder().logicalPlan();
    while (cached instanceof SubqueryAlias) cached = (LogicalPlan) cached.children().head();
    if (!(cached instanceof DataSourceV2Relation)
        || !(((DataSourceV2Relation) cached).table() instanceof IcebergPyTable))
      return target;
    // the statement's expressions refer to the columns by the ids of the cached relation
    List arguments = new ArrayList(
        CollectionConverters.asJava(((DataSourceV2Relation) cached).productIterator().toSeq()));
    arguments.set(1, target.output());
    return (LogicalPlan) cached.makeCopy(arguments.toArray());
  }
}
