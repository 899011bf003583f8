import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.classic.SparkSession;

/**
 * What Spark hands on from a session to those it makes of it, by newSession() or as clones. Other
 * sessions have the same object: a session with Iceberg gets one of its own, with all that is in
 * the other.
 */
class IcebergPyExtensions {
  private static final Map OURS = new WeakHashMap();

  /** `parser` puts ours in front of the parser of a new session; null leaves parsers alone. */
  static void put(SparkSession session, scala.Function2 parser)
      throws ReflectiveOperationException {
    synchronized (OURS) {
      SparkSessionExtensions before = session.extensions();
      if (OURS.containsKey(before)) return;
      SparkSessionExtensions ours = IcebergPyInternals.copyOf(before);
      ours.injectCheckRule(new IcebergPyMeeting());
      if (parser != null) ours.injectParser(parser);
      OURS.put(ours, before);
      IcebergPyInternals.setExtensions(session, ours);
    }
  }
  static void takeOut(SparkSession session) throws ReflectiveOperationException {
    synchronized (OURS) {
      Object before = OURS.get(session.extensions());
      if (before != null)
        IcebergPyInternals.setExtensions(session, (SparkSessionExtensions) before);
    }
  }
}
