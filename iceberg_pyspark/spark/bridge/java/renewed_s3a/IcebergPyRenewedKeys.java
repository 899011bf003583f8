import java.net.URI;
import java.time.Instant;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.s3a.auth.NoAwsCredentialsException;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.util.RpcUtils;
import org.slf4j.LoggerFactory;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;
import software.amazon.awssdk.auth.credentials.AwsSessionCredentials;

/**
 * The credentials of one bucket in one process. Shortly before they expire, this class requests new
 * ones from the driver, by Spark's own connection; the catalog's secrets stay in the driver. The
 * times are those of `storage/credential_renewal.py`.
 */
public class IcebergPyRenewedKeys implements AwsCredentialsProvider {
  static final String ENDPOINT = "iceberg-py-credentials";
  private static final long WINDOW_MS = 300000, PAUSE_MS = 10000, LEAST_PAUSE_MS = 1000;
  private final String place;
  private final String renewal;
  private volatile AwsCredentials current;
  private volatile long endMs;
  private volatile long nextMs;

  IcebergPyRenewedKeys(URI name, Configuration settings) {
    String start = "fs." + name.getScheme() + ".credentials-";
    place = "s3://" + name.getAuthority();
    renewal = settings.get(start + "renewal");
    take(settings.get("fs.s3a.access.key"), settings.get("fs.s3a.secret.key"),
        settings.get("fs.s3a.session.token"), settings.getLong(start + "end-ms", Long.MAX_VALUE));
  }

  public AwsCredentials resolveCredentials() {
    if (System.currentTimeMillis() >= nextMs) renew();
    return current;
  }

  private synchronized void renew() {
    // another thread may have renewed them meanwhile
    if (System.currentTimeMillis() < nextMs) return;
    String problem;
    try {
      String[] answer = answerOfDriver();
      if (answer.length > 1) {
        take(answer[0], answer[1], answer[2], Long.parseLong(answer[3]));
        // a pause in case the answer is the same again, but not beyond the end
        long pauseMs = System.currentTimeMillis() + LEAST_PAUSE_MS;
        boolean valid = System.currentTimeMillis() < endMs;
        nextMs = Math.max(nextMs, valid ? Math.min(pauseMs, endMs) : pauseMs);
        return;
      }
      problem = answer[0];
    } catch (Exception e) {
      if ((Object) e instanceof InterruptedException) Thread.currentThread().interrupt();
      problem = "the driver did not answer: " + e;
    }
    long now = System.currentTimeMillis();
    if (now >= endMs)
      throw new NoAwsCredentialsException("IcebergPyRenewedKeys",
          "the credentials that the catalog vended for " + place + " expired at "
              + Instant.ofEpochMilli(endMs)
              + "; remove the cause, and run the statement again. They could not be renewed: "
              + problem);
    nextMs = Math.min(now + PAUSE_MS, endMs);
    LoggerFactory.getLogger("iceberg_pyspark")
        .warn("expiring credentials for {} could not be renewed: {}", place, problem);
  }

  /** Return the key, the secret, the token and the time of expiry, or only the reason why not. */
  private String[] answerOfDriver() {
    IcebergPySparkProcess spark = new IcebergPySparkProcess();
    RpcEndpointRef driver = RpcUtils.makeDriverRef(ENDPOINT, spark.conf(), spark.rpcEnv());
    return (String[]) driver.askSync(
        renewal, scala.reflect.ClassTag$.MODULE$.apply(String[].class));
  }

  private void take(String key, String secret, String token, long end) {
    current = token == null ? (AwsCredentials) AwsBasicCredentials.create(key, secret)
                            : (AwsCredentials) AwsSessionCredentials.create(key, secret, token);
    long now = System.currentTimeMillis();
    endMs = end;
    nextMs = end - Math.min(Math.max(end - now, 0) / 10, WINDOW_MS);
  }
}
