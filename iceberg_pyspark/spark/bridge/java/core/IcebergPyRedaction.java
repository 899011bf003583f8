import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;

/**
 * What Spark records of an application (event log, UI) without the secrets of catalogs;
 * redaction.py says which those are.
 */
public class IcebergPyRedaction {
  /**
   * Have events and the environment page hide what a pattern finds, in a key or its value, besides
   * what they hide; gives what failed, or null.
   */
  public String hide(Object session, String pattern) {
    try {
      SparkContext context = ((org.apache.spark.sql.classic.SparkSession) session).sparkContext();
      SparkConf conf = context.conf();
      String known =
          conf.get(org.apache.spark.internal.config.package$.MODULE$.SECRET_REDACTION_PATTERN())
              .toString();
      if (known.indexOf(pattern) < 0) conf.set("spark.redaction.regex", known + "|" + pattern);
      scala.Option log = context.eventLogger();
      if (log.isEmpty()) return null;
      IcebergPyInternals.askSettings(log.get(), new IcebergPyRedactedConf(conf));
      return null;
    } catch (Exception e) {
      return e.toString();
    } catch (LinkageError e) {
      return e.toString();
    }
  }
}
