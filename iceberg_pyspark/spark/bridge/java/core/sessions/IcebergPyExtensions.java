import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
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
      ours.injectOptimizerRule(new IcebergPyPythonFunctions.Builder());
      ours.injectPostHocResolutionRule(new IcebergPyAssignments.Builder());
      ours.injectPostHocResolutionRule(new IcebergPyStatementRule.Builder());
      if (parser != null) ours.injectParser(parser);
      OURS.put(ours, before);
      IcebergPyInternals.setExtensions(session, ours);
      if (IcebergPyInternals.hasState(session)) setAnalysisRules(session, true);
    }
  }
  static void remove(SparkSession session) throws ReflectiveOperationException {
    synchronized (OURS) {
      Object before = OURS.get(session.extensions());
      if (before == null) return;
      IcebergPyInternals.setExtensions(session, (SparkSessionExtensions) before);
      if (IcebergPyInternals.hasState(session)) setAnalysisRules(session, false);
    }
  }

  /**
   * Add our rules to the session's analyzer, or remove them. Unlike the optimizer, an analyzer gets
   * its rules from the extensions only when Spark makes it.
   */
  private static void setAnalysisRules(SparkSession session, boolean ours)
      throws ReflectiveOperationException {
    Analyzer analyzer = session.sessionState().analyzer();
    List rules = new ArrayList();
    scala.collection.Iterator it = analyzer.postHocResolutionRules().iterator();
    while (it.hasNext()) {
      Object rule = it.next();
      if (!(rule instanceof IcebergPyAssignments || rule instanceof IcebergPyStatementRule))
        rules.add(rule);
    }
    if (ours) {
      rules.add(new IcebergPyAssignments());
      rules.add(new IcebergPyStatementRule());
    }
    IcebergPyInternals.setAnalysisRules(analyzer, IcebergPyBridge.seq(rules));
  }
}
