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
  public String lacking(Object session) throws com.fasterxml.jackson.core.JsonProcessingException {
    return IcebergPyBridge.JSON.writeValueAsString(IcebergPyInternals.probe(session));
  }
  public void askBy(IcebergPyCallback python) { IcebergPyBridge.python = python; }

  /** SQL expressions over a DataFrame at once: each call from Python costs a millisecond. */
  public Object selectedFrame(Object frame, String expressionsJson)
      throws com.fasterxml.jackson.core.JsonProcessingException {
    return ((org.apache.spark.sql.classic.Dataset) frame)
        .selectExpr(IcebergPyBridge.seq(
            (List) IcebergPyBridge.JSON.readValue(expressionsJson, List.class)));
  }
  public LogicalPlan analysed(Object frame) {
    return (LogicalPlan) (Object) ((org.apache.spark.sql.classic.Dataset) frame)
        .queryExecution()
        .analyzed();
  }
  public List newList() { return new ArrayList(); }
  public List newPart(Object plan, Object live, List antiJoins) {
    return IcebergPyBridge.list(
        new Object[] {plan, live, antiJoins == null ? new ArrayList() : antiJoins});
  }

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

  /** Add the rule and the strategy to a session once; tells whether they were added. */
  public boolean addRule(Object session) {
    org.apache.spark.sql.ExperimentalMethods methods =
        ((org.apache.spark.sql.classic.SparkSession) session).experimental();
    scala.collection.immutable.Seq rules = methods.extraOptimizations();
    scala.collection.Iterator it = rules.iterator();
    while (it.hasNext())
      if (it.next() instanceof IcebergPyRule) return false;
    methods.extraOptimizations_$eq(
        (scala.collection.immutable.Seq) rules.appended(new IcebergPyRule()));
    methods.extraStrategies_$eq((scala.collection.immutable.Seq) methods.extraStrategies().appended(
        new IcebergPyStrategy()));
    return true;
  }
  public void removeRule(Object session) {
    org.apache.spark.sql.ExperimentalMethods methods =
        ((org.apache.spark.sql.classic.SparkSession) session).experimental();
    methods.extraOptimizations_$eq(withoutOurs(methods.extraOptimizations()));
    methods.extraStrategies_$eq(withoutOurs(methods.extraStrategies()));
  }
  private static scala.collection.immutable.Seq withoutOurs(scala.collection.immutable.Seq all) {
    List kept = new ArrayList();
    scala.collection.Iterator it = all.iterator();
    while (it.hasNext()) {
      Object one = it.next();
      if (!(one instanceof IcebergPyRule || one instanceof IcebergPyStrategy)) kept.add(one);
    }
    return IcebergPyBridge.seq(kept);
  }
  /** The session of that name that asked something, if it is still there. */
  public Object sessionNamed(String id) { return IcebergPyBridge.sessionNamed(id); }
  /** Have a session forget its catalogs of ours, so that they are opened anew when next named. */
  public void forgetCatalogs(Object session) throws ReflectiveOperationException {
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
  /** Load a catalog by its configured name, as a query that names it would. */
  public void openCatalog(Object session, String name) {
    ((org.apache.spark.sql.classic.SparkSession) session)
        .sessionState()
        .catalogManager()
        .catalog(name);
  }
  public String sessionHandle(Object session) { return IcebergPyBridge.handleOf(session); }
}
