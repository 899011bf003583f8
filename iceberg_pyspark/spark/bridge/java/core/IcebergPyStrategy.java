import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/** Plans a statement that changes an Iceberg table as a single command. */
public class IcebergPyStrategy extends org.apache.spark.sql.execution.SparkStrategy {
  public IcebergPyStrategy() { super(); }
  public scala.collection.immutable.Seq apply(LogicalPlan plan) {
    List commands = new ArrayList();
    plan = IcebergPyUncached.of(plan);
    if (isOurs(plan)) commands.add(new IcebergPyCommand(plan));
    return IcebergPyBridge.seq(commands);
  }
  private static boolean isOurs(LogicalPlan plan) {
    if (!(plan instanceof V2WriteCommand || plan instanceof DeleteFromTable
            || plan instanceof UpdateTable || plan instanceof MergeIntoTable))
      return false;
    Object target = IcebergPyCommand.target(plan);
    if (!(target instanceof DataSourceV2Relation)) return false;
    return ((DataSourceV2Relation) target).table() instanceof IcebergPyTable
        || plan instanceof V2WriteCommand && IcebergPySource.isOurs((DataSourceV2Relation) target);
  }
}
