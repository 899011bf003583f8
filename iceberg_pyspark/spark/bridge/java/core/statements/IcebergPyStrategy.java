import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.plans.logical.AnalyzeTables;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.unsafe.Platform;

/** Plans a statement that changes an Iceberg table as a single command. */
public class IcebergPyStrategy extends org.apache.spark.sql.execution.SparkStrategy {
  public IcebergPyStrategy() { super(); }
  public scala.collection.immutable.Seq apply(LogicalPlan plan) {
    // Spark has no plan for it outside of its own catalog, and would end in an internal error
    if (plan instanceof AnalyzeTables)
      Platform.throwException(new AnalysisException("NOT_SUPPORTED_COMMAND_FOR_V2_TABLE",
          new scala.collection.immutable.Map.Map1("cmd", "ANALYZE TABLES")));
    List commands = new ArrayList();
    plan = IcebergPyCachedTargets.withoutCache(plan);
    if (changesRows(plan)) plan = IcebergPyPythonFunctions.unwrap(plan);
    if (isOurs(plan)) commands.add(new IcebergPyCommand(plan));
    SparkPlan ofStream = IcebergPyEpoch.of(plan);
    if (ofStream == null) ofStream = IcebergPyBatches.pythonsRows(plan);
    if (ofStream != null) commands.add(ofStream);
    LogicalPlan answer = IcebergPySessionCommands.answer(plan);
    if (answer != null)
      return IcebergPySessions.active().sessionState().planner().plan(answer).toSeq();
    return IcebergPyBridge.seq(commands);
  }
  private static boolean isOurs(LogicalPlan plan) {
    if (!(plan instanceof V2WriteCommand)) return changesRows(plan);
    Object target = IcebergPyCommand.target(plan);
    return target instanceof DataSourceV2Relation
        && (((DataSourceV2Relation) target).table() instanceof IcebergPyTable
            || IcebergPySource.isOurs((DataSourceV2Relation) target));
  }
  /** Return whether a plan is a DELETE, UPDATE or MERGE of an Iceberg table. */
  static boolean changesRows(LogicalPlan plan) {
    if (!(plan instanceof DeleteFromTable || plan instanceof UpdateTable
            || plan instanceof MergeIntoTable))
      return false;
    Object target = IcebergPyCommand.target(plan);
    return target instanceof DataSourceV2Relation
        && ((DataSourceV2Relation) target).table() instanceof IcebergPyTable;
  }
}
