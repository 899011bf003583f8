import org.apache.spark.rpc.RpcEnv;
import org.apache.spark.sql.classic.SparkSession;

/** Lets the tasks of an application open stores with the options of one catalog. */
public class IcebergPyTaskStores {
  private static String endpointApplication;

  /** Send the classes that tasks need to open a store by a file system of this package. */
  public void open(Object session, String fileSystem) throws ClassNotFoundException {
    IcebergPyExecutorJars.send((SparkSession) session, IcebergPyTaskStores.class);
    Class fileSystemClass =
        Class.forName(fileSystem, false, IcebergPyTaskStores.class.getClassLoader());
    IcebergPyExecutorJars.send((SparkSession) session, fileSystemClass);
  }

  /** Let tasks request new credentials from the driver. */
  public void renew(Object session) { renew((SparkSession) session); }

  private static synchronized void renew(SparkSession session) {
    String application = session.sparkContext().applicationId();
    if (application.equals(endpointApplication)) return;
    RpcEnv env = new IcebergPySparkProcess().rpcEnv();
    env.setupEndpoint(IcebergPyRenewedOptions.ENDPOINT, new IcebergPyRenewalEndpoint(env));
    endpointApplication = application;
  }
}
