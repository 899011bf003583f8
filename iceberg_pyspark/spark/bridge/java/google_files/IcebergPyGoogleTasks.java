import org.apache.spark.sql.classic.SparkSession;

/** Lets the tasks of an application open Google's stores with the options of one catalog. */
public class IcebergPyGoogleTasks {
  /** Send the classes of this folder to executors. */
  public void start(Object session) {
    IcebergPyExecutorJars.send((SparkSession) session, IcebergPyGoogleTasks.class);
  }
}
