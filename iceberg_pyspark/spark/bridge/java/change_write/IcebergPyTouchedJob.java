import org.apache.spark.SparkContext;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;

/** Runs `IcebergPyTouchedTask` on the rows of a plan. */
class IcebergPyTouchedJob extends scala.runtime.AbstractFunction0 {
  private final SparkContext context;
  private final QueryExecution execution;
  IcebergPyTouchedJob(SparkContext context, QueryExecution execution) {
    this.context = context;
    this.execution = execution;
  }
  public Object apply() {
    return context.runJob(((SparkPlan) execution.executedPlan()).execute(),
        new IcebergPyTouchedTask(), scala.reflect.ClassTag$.MODULE$.apply(String.class));
  }
}
