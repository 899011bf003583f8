import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.apache.spark.rpc.RpcEnv;
import org.apache.spark.sql.classic.SparkSession;

/** Lets the tasks of an application request new credentials from its driver. */
public class IcebergPyRenewals {
  private static String started;

  /** Return null once tasks can do so, or the reason why they cannot. */
  public String start(Object session) throws java.io.IOException {
    return start((SparkSession) session);
  }
  private static synchronized String start(SparkSession session) throws java.io.IOException {
    Class s3a = FileSystem.getFileSystemClass("s3a", session.sessionState().newHadoopConf());
    if (s3a != S3AFileSystem.class)
      return "the session's file system for s3a:// is a " + s3a.getName();
    String application = session.sparkContext().applicationId();
    if (application.equals(started)) return null;
    RpcEnv env = new IcebergPySparkProcess().rpcEnv();
    env.setupEndpoint(IcebergPyRenewedKeys.ENDPOINT, new IcebergPyRenewalEndpoint(env));
    IcebergPyExecutorJars.send(session, IcebergPyRenewals.class);
    started = application;
    return null;
  }
}
