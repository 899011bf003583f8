import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;

/** The jars of classes that executors need, each sent once for an application. */
public class IcebergPyExecutorJars {
  private static final Map applications = new HashMap();

  /** Send the jar of a class to the executors of a session, also to those that start later. */
  static synchronized void send(SparkSession session, Class executorClass) {
    // the driver's class loader is the parent of such an executor's
    if (session.sparkContext().isLocal()) return;
    String jar = executorClass.getProtectionDomain().getCodeSource().getLocation().toString();
    String application = session.sparkContext().applicationId();
    if (application.equals(applications.get(jar))) return;
    session.sparkContext().addJar(jar);
    applications.put(jar, application);
  }
}
