import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.classic.SparkSession;

/**
 * The extensions that Spark passes from a session to its copies (newSession() or clones). Several
 * sessions may share one object, so a session with Iceberg gets its own copy.
 */
class IcebergPyExtensions {
  private static final Map OURS = new WeakHashMap();

  /** `parser` puts our parser before the parser of a new session; null leaves parsers alone. */
  static void inject(SparkSession session, scala.Function2 parser)
      throws ReflectiveOperationException {
    synchronized (OURS) {
      SparkSessionExtensions before = session.extensions();
      if (OURS.containsKey(before)) return;
      SparkSessionExtensions ours = IcebergPyInternals.copyOf(before);
      ours.injectCheckRule(new IcebergPySessionStart());
      // Spark gets these rules from the extensions at each query, also in a session from before
      ours.injectOptimizerRule(new IcebergPyPythonFunctions.Builder());
      if (parser != null) ours.injectParser(parser);
      OURS.put(ours, before);
      IcebergPyInternals.setExtensions(session, ours);
    }
  }
  static void remove(SparkSession session) throws ReflectiveOperationException {
    synchronized (OURS) {
      Object before = OURS.get(session.extensions());
      if (before != null)
        IcebergPyInternals.setExtensions(session, (SparkSessionExtensions) before);
    }
  }
}
