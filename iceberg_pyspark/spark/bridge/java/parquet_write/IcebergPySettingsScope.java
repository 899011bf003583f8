import org.apache.spark.sql.execution.SQLExecution$;

/** Runs a body with a session's settings, which are passed on to its tasks. */
class IcebergPySettingsScope extends scala.runtime.AbstractFunction0 {
  private final org.apache.spark.sql.classic.SparkSession session;
  private final scala.Function0 body;
  IcebergPySettingsScope(org.apache.spark.sql.classic.SparkSession session, scala.Function0 body) {
    this.session = session;
    this.body = body;
  }
  public Object apply() { return SQLExecution$.MODULE$.withSQLConfPropagated(session, body); }
}
