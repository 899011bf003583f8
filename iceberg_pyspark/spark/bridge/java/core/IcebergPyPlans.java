import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;

/** The methods that Python calls through py4j. */
public class IcebergPyPlans {
  /** Open a callback to a port of Python: see `IcebergPyCallback`. */
  public IcebergPyCallback callback(Object server, String address, int port, String secrets)
      throws java.io.IOException {
    return new IcebergPyCallback(server, address, port, secrets);
  }
  /** Return why modules of our sources are missing, as JSON, from our jar. */
  public String failures() throws java.io.IOException {
    return new String(
        IcebergPyPlans.class.getResourceAsStream("/iceberg_pyspark_failures.json").readAllBytes(),
        java.nio.charset.StandardCharsets.UTF_8);
  }
  /** Return the internals that this release of Spark lacks, as JSON: see `IcebergPyInternals`. */
  public String missingInternals(Object session)
      throws com.fasterxml.jackson.core.JsonProcessingException {
    return IcebergPyBridge.JSON.writeValueAsString(IcebergPyInternals.probe(session));
  }
  public void setCallback(IcebergPyCallback callback) { IcebergPyBridge.callback = callback; }
  /** Clear the callback to Python if no session has Iceberg any more; return whether that is so. */
  public boolean clearUnusedCallback() { return IcebergPySessions.clearUnusedCallback(); }

  /** Select many SQL expressions in one call, because each call from Python costs a millisecond. */
  public Object select(Object frame, String expressionsJson)
      throws com.fasterxml.jackson.core.JsonProcessingException {
    return ((org.apache.spark.sql.classic.Dataset) frame)
        .selectExpr(IcebergPyBridge.seq(
            (List) IcebergPyBridge.JSON.readValue(expressionsJson, List.class)));
  }
  /** Read rows again that Spark has cached: see `IcebergPyCachedRows`. */
  public void recacheTable(Object session, String nameJson)
      throws com.fasterxml.jackson.core.JsonProcessingException {
    IcebergPyCachedRows.recache((org.apache.spark.sql.classic.SparkSession) session,
        (List) IcebergPyBridge.JSON.readValue(nameJson, List.class));
  }
  public LogicalPlan analyse(Object frame) {
    return (LogicalPlan) (Object) ((org.apache.spark.sql.classic.Dataset) frame)
        .queryExecution()
        .analyzed();
  }
  /** Return the list of lists, strings and objects that the JSON describes. */
  public Object list(Object server, String json) { return IcebergPyObjects.read(server, json); }

  /** Install Iceberg's planning of our tables in a session. */
  public void install(Object session) {
    IcebergPySessions.begin((org.apache.spark.sql.classic.SparkSession) session);
  }
  public void uninstall(Object session) {
    IcebergPySessions.end((org.apache.spark.sql.classic.SparkSession) session);
  }
  /** Install it in a session and its copies when they begin: see `IcebergPySessions`. */
  public boolean installLater(Object session, scala.Function2 parser)
      throws ReflectiveOperationException {
    return IcebergPySessions.beginLater(
        (org.apache.spark.sql.classic.SparkSession) session, parser);
  }
  /** Install it in the session's later copies too, with our parser before theirs. */
  public void installExtensions(Object session, scala.Function2 parser)
      throws ReflectiveOperationException {
    IcebergPyExtensions.inject((org.apache.spark.sql.classic.SparkSession) session, parser);
  }
  public void uninstallExtensions(Object session) throws ReflectiveOperationException {
    IcebergPyExtensions.remove((org.apache.spark.sql.classic.SparkSession) session);
  }
  /** Return the prefix of this JVM's session handles, which no other JVM uses. */
  public String jvm() { return IcebergPySessions.JVM; }
  /** Return the session of a handle if it may still send requests. */
  public Object sessionOf(String handle) { return IcebergPySessions.sessionOf(handle); }
  /** Return, as JSON, the handles that nothing can use any more; each handle is returned once. */
  public String unusableHandles() throws com.fasterxml.jackson.core.JsonProcessingException {
    return IcebergPyBridge.JSON.writeValueAsString(IcebergPySessions.unusableHandles());
  }
  /** Remove our catalogs from a session, so that the next use opens them again. */
  public void removeCatalogs(Object session) throws ReflectiveOperationException {
    // Spark opens catalogs under this lock
    synchronized (
        ((org.apache.spark.sql.classic.SparkSession) session).sessionState().catalogManager()) {
      List all = IcebergPyInternals.openCatalogs(session);
      for (int i = 0; i < all.size(); i++) {
        Map catalogs = (Map) all.get(i);
        List ours = new ArrayList();
        Iterator names = catalogs.keySet().iterator();
        while (names.hasNext()) {
          Object name = names.next();
          if (catalogs.get(name) instanceof iceberg_pyspark) ours.add(name);
        }
        for (int n = 0; n < ours.size(); n++) catalogs.remove(ours.get(n));
      }
    }
  }
  /**
   * Load a catalog by its configured name, as a query with this name does. A catalog takes its
   * settings and its session from the thread's active session.
   */
  public void openCatalog(Object object, String name) {
    SparkSession session = (SparkSession) object;
    scala.Option before = SparkSession.getActiveSession();
    SparkSession.setActiveSession(session);
    try {
      session.sessionState().catalogManager().catalog(name);
    } finally {
      if (before.isDefined())
        SparkSession.setActiveSession((SparkSession) before.get());
      else
        SparkSession.clearActiveSession();
    }
  }
  public String sessionHandle(Object session) { return IcebergPySessions.handleOf(session).text; }
}
