import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Hides the secrets of catalogs in what Spark shows of sessions and records of an application
 * (event log, UI); hidden_secrets.py defines the secrets.
 */
public class IcebergPyRedaction {
  private static volatile Map patterns = new HashMap();

  /** Set the patterns that the redaction settings of sessions with Iceberg hide, too. */
  public void hideInSettings(String json)
      throws com.fasterxml.jackson.core.JsonProcessingException {
    patterns = (Map) IcebergPyBridge.JSON.readValue(json, Map.class);
  }
  static void hideIn(SparkSession session) {
    Iterator all = patterns.entrySet().iterator();
    while (all.hasNext()) {
      Map.Entry one = (Map.Entry) all.next();
      String name = (String) one.getKey(), pattern = (String) one.getValue();
      scala.Option set = session.conf().getOption(name);
      String before = set.isDefined() ? (String) set.get() : "";
      if (before.indexOf(pattern) < 0)
        session.conf().set(name, before.isEmpty() ? pattern : before + "|" + pattern);
    }
  }

  /**
   * Make events and the environment page also hide a pattern in a key or its value; return the
   * error, or null on success.
   */
  public String hide(Object session, String pattern) {
    try {
      SparkContext context = ((SparkSession) session).sparkContext();
      SparkConf conf = context.conf();
      synchronized (conf) {
        String before =
            conf.get(org.apache.spark.internal.config.package$.MODULE$.SECRET_REDACTION_PATTERN())
                .toString();
        if (before.indexOf(pattern) < 0) conf.set("spark.redaction.regex", before + "|" + pattern);
        scala.Option log = context.eventLogger();
        if (log.isEmpty()) return null;
        IcebergPyInternals.setEventLogSettings(log.get(), new IcebergPyRedactedConf(conf));
      }
      return null;
    } catch (Exception e) {
      return e.toString();
    } catch (LinkageError e) {
      return e.toString();
    }
  }
}
