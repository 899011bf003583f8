import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.command.ExplainCommand;

/** What EXPLAIN shows below a statement: how Spark reads the rows that the statement is about. */
class IcebergPyExplanation {
  /** Return whether this thread explains a statement; all others would plan its rows twice. */
  static boolean isAsked() {
    String id =
        IcebergPySessions.active().sparkContext().getLocalProperty(SQLExecution.EXECUTION_ID_KEY());
    QueryExecution execution =
        id == null ? null : SQLExecution.getQueryExecution(Long.parseLong(id));
    return execution != null && execution.logical() instanceof ExplainCommand;
  }
  /** Plan the rows that a statement reads; nothing is run. */
  static SparkPlan of(LogicalPlan plan) {
    SparkSession session = IcebergPySessions.active();
    LogicalPlan rows = rows(plan);
    // an analysis would refuse subqueries that Spark has optimized
    rows.setAnalyzed();
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(session, rows)
        .queryExecution()
        .executedPlan();
  }
  private static LogicalPlan rows(LogicalPlan plan) {
    if (plan instanceof V2WriteCommand)
      return (LogicalPlan) (Object) ((V2WriteCommand) plan).query();
    LogicalPlan table = (LogicalPlan) IcebergPyCommand.target(plan);
    if (plan instanceof DeleteFromTable)
      return new Filter((Expression) (Object) ((DeleteFromTable) plan).condition(), table);
    if (plan instanceof UpdateTable) {
      scala.Option condition = ((UpdateTable) plan).condition();
      return condition.isEmpty() ? table : new Filter((Expression) condition.get(), table);
    }
    MergeIntoTable merge = (MergeIntoTable) plan;
    boolean keepsTable = !merge.notMatchedBySourceActions().isEmpty();
    boolean keepsSource = !merge.notMatchedActions().isEmpty();
    String type = keepsTable && keepsSource ? "full"
        : keepsTable                        ? "left"
        : keepsSource                       ? "right"
                                            : "inner";
    return new Join(table, (LogicalPlan) (Object) merge.sourceTable(), JoinType.apply(type),
        scala.Option.apply(merge.mergeCondition()), JoinHint.NONE());
  }
}
