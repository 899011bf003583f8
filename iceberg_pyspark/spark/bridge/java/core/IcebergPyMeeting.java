import org.apache.spark.sql.classic.SparkSession;

/**
 * Meets sessions: Spark asks for a check of analysed plans before a session has its first one
 * analysed. The check itself looks at nothing.
 */
class IcebergPyMeeting extends scala.runtime.AbstractFunction1 {
  public Object apply(Object session) {
    if (!(session instanceof SparkSession)) return scala.runtime.BoxedUnit.UNIT;
    IcebergPySessions.inherit((SparkSession) session);
    return this;
  }
}
