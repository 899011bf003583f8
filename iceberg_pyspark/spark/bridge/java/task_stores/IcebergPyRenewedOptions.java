import java.io.IOException;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.util.RpcUtils;
import org.slf4j.LoggerFactory;

/**
 * The credentials of one store in one process, as options of Hadoop. Shortly before they expire,
 * this class requests new ones from the driver, by Spark's own connection; the catalog's secrets
 * stay in the driver. The times are those of `storage/credentials/credential_renewal.py`.
 */
public class IcebergPyRenewedOptions {
  static final String ENDPOINT = "iceberg-py-credentials";
  private static final long WINDOW_MS = 300000, PAUSE_MS = 10000, MIN_PAUSE_MS = 1000;
  private final String place;
  private final String renewal;
  private volatile Map current = new HashMap();
  private volatile long endMs;
  private volatile long nextMs;

  /**
   * `scheme` is the scheme of the store's own options, `place` names the store in errors, and
   * `names` are the options with credentials. Credentials without renewal stay as they are.
   */
  IcebergPyRenewedOptions(String scheme, String place, Configuration settings, String[] names) {
    String start = "fs." + scheme + ".credentials-";
    this.place = place;
    renewal = settings.get(start + "renewal");
    Map options = new HashMap();
    for (int i = 0; i < names.length; i++) options.put(names[i], settings.get(names[i]));
    long end = settings.getLong(start + "end-ms", Long.MAX_VALUE);
    update(options, renewal == null ? Long.MAX_VALUE : end);
  }

  /** Return the options by their names, after a renewal if it is due. */
  Map current() throws IOException {
    if (System.currentTimeMillis() >= nextMs) renew();
    return current;
  }

  /** Return the options of the last renewal, which may have expired. */
  Map latest() { return current; }

  /** Return when the latest options expire, in milliseconds; `Long.MAX_VALUE` if never. */
  long endMs() { return endMs; }

  private synchronized void renew() throws IOException {
    // another thread may have renewed them meanwhile
    if (System.currentTimeMillis() < nextMs) return;
    String problem;
    try {
      String[] response = driverResponse();
      if (response.length > 1) {
        Map options = new HashMap();
        for (int i = 1; i < response.length; i += 2) options.put(response[i], response[i + 1]);
        update(options, Long.parseLong(response[0]));
        // a pause in case the response is the same again, but not beyond the end
        long pauseMs = System.currentTimeMillis() + MIN_PAUSE_MS;
        boolean valid = System.currentTimeMillis() < endMs;
        nextMs = Math.max(nextMs, valid ? Math.min(pauseMs, endMs) : pauseMs);
        return;
      }
      problem = response[0];
    } catch (Exception e) {
      if ((Object) e instanceof InterruptedException) Thread.currentThread().interrupt();
      problem = "the driver did not answer: " + e;
    }
    long now = System.currentTimeMillis();
    if (now >= endMs)
      throw new IOException("the credentials that the catalog vended for " + place + " expired at "
          + Instant.ofEpochMilli(endMs)
          + "; remove the cause, and run the statement again. They could not be renewed: "
          + problem);
    nextMs = Math.min(now + PAUSE_MS, endMs);
    LoggerFactory.getLogger("iceberg_pyspark")
        .warn("expiring credentials for {} could not be renewed: {}", place, problem);
  }

  /** Return the time of expiry, then names and values of options; or only the reason why not. */
  private String[] driverResponse() {
    IcebergPySparkProcess spark = new IcebergPySparkProcess();
    RpcEndpointRef driver = RpcUtils.makeDriverRef(ENDPOINT, spark.conf(), spark.rpcEnv());
    return (String[]) driver.askSync(
        renewal, scala.reflect.ClassTag$.MODULE$.apply(String[].class));
  }

  private void update(Map options, long end) {
    current = options;
    long now = System.currentTimeMillis();
    endMs = end;
    nextMs = end - Math.min(Math.max(end - now, 0) / 10, WINDOW_MS);
  }
}
