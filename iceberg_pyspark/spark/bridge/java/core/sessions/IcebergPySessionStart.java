import org.apache.spark.sql.classic.SparkSession;

/**
 * Sees every new session: Spark builds the check rules of a session before the session analyses its
 * first plan. The check itself does nothing.
 */
class IcebergPySessionStart extends scala.runtime.AbstractFunction1 {
  public Object apply(Object session) {
    if (!(session instanceof SparkSession)) return scala.runtime.BoxedUnit.UNIT;
    IcebergPySessions.inherit((SparkSession) session);
    return this;
  }
}
