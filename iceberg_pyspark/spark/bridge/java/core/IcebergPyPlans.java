import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** What Python builds plans with. */
public class IcebergPyPlans {
  /** What asks Python at a port: see `IcebergPyCallback`. */
  public IcebergPyCallback callback(Object server, String address, int port, String secrets)
      throws java.io.IOException {
    return new IcebergPyCallback(server, address, port, secrets);
  }
  /** What the release lacks of Spark's internals: `IcebergPyInternals`. */
  public String missingInternals(Object session)
      throws com.fasterxml.jackson.core.JsonProcessingException {
    return IcebergPyBridge.JSON.writeValueAsString(IcebergPyInternals.probe(session));
  }
  public void askBy(IcebergPyCallback python) { IcebergPyBridge.python = python; }
  /** Ask no more where no session is left with Iceberg; tells whether that is so. */
  public boolean askNoMore() { return IcebergPySessions.askNoMore(); }

  /** SQL expressions over a DataFrame at once: each call from Python costs a millisecond. */
  public Object select(Object frame, String expressionsJson)
      throws com.fasterxml.jackson.core.JsonProcessingException {
    return ((org.apache.spark.sql.classic.Dataset) frame)
        .selectExpr(IcebergPyBridge.seq(
            (List) IcebergPyBridge.JSON.readValue(expressionsJson, List.class)));
  }
  public LogicalPlan analyse(Object frame) {
    return (LogicalPlan) (Object) ((org.apache.spark.sql.classic.Dataset) frame)
        .queryExecution()
        .analyzed();
  }
  /** A list of lists, texts and objects, which JSON names. */
  public Object list(Object server, String json) { return IcebergPyObjects.read(server, json); }

  /** Whether the session knows a file system for a scheme, and its class is there. */
  public boolean hasFileSystem(Object session, String scheme) {
    try {
      return org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme,
                 ((org.apache.spark.sql.classic.SparkSession) session)
                     .sessionState()
                     .newHadoopConf())
          != null;
    } catch (Exception e) {
      return false;
    } catch (LinkageError e) {
      return false;
    }
  }

  /** Have a session plan what is about our tables as we do. */
  public void install(Object session) {
    IcebergPySessions.begin((org.apache.spark.sql.classic.SparkSession) session);
  }
  public void uninstall(Object session) {
    IcebergPySessions.end((org.apache.spark.sql.classic.SparkSession) session);
  }
  /** Have sessions that Spark makes of a session do so too, with ours in front of their parsers. */
  public void installInNew(Object session, scala.Function2 parser)
      throws ReflectiveOperationException {
    IcebergPyExtensions.put((org.apache.spark.sql.classic.SparkSession) session, parser);
  }
  public void uninstallInNew(Object session) throws ReflectiveOperationException {
    IcebergPyExtensions.takeOut((org.apache.spark.sql.classic.SparkSession) session);
  }
  /** What handles of sessions begin with here, and nowhere else. */
  public String jvm() { return IcebergPySessions.JVM; }
  /** The session of a handle that still may ask. */
  public Object sessionOf(String handle) { return IcebergPySessions.sessionOf(handle); }
  /** The handles that nothing can ask with any more, as JSON, each of them once. */
  public String unusableHandles() throws com.fasterxml.jackson.core.JsonProcessingException {
    return IcebergPyBridge.JSON.writeValueAsString(IcebergPySessions.unusableHandles());
  }
  /** Have a session forget its catalogs of ours, so that they are opened anew when next named. */
  public void forgetCatalogs(Object session) throws ReflectiveOperationException {
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
  /** Load a catalog by its configured name, as a query that names it would. */
  public void openCatalog(Object session, String name) {
    ((org.apache.spark.sql.classic.SparkSession) session)
        .sessionState()
        .catalogManager()
        .catalog(name);
  }
  public String sessionHandle(Object session) { return IcebergPySessions.handleOf(session).text; }
}
