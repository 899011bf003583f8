import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.BooleanType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StructType;

/** What Python builds plans with. */
public class IcebergPyPlans {
  private final IcebergPyBroadcasts held = new IcebergPyBroadcasts();

  /** What asks Python at a port: see `IcebergPyCallback`. */
  public IcebergPyCallback callback(Object server, String address, int port, String secrets)
      throws java.io.IOException {
    return new IcebergPyCallback(server, address, port, secrets);
  }
  public void askBy(IcebergPyCallback python) { IcebergPyBridge.python = python; }

  /**
   * A DataFrame over chosen Parquet files; the reader finds columns by field id, set for this
   * relation alone.
   */
  public Object parquetRelation(Object session, String key, String root, String files,
      String factsJson, String columnsJson, String optionsJson, long rows)
      throws com.fasterxml.jackson.core.JsonProcessingException {
    org.apache.spark.sql.classic.SparkSession spark =
        (org.apache.spark.sql.classic.SparkSession) session;
    StructType facts = (StructType) DataType.fromJson(factsJson);
    StructType columns = (StructType) DataType.fromJson(columnsJson);
    Map options = (Map) IcebergPyBridge.JSON.readValue(optionsJson, Map.class);
    FileIndex index =
        new IcebergPyFileIndex(key, root, files, facts, IcebergPySizes.estimate(rows, columns));
    HadoopFsRelation relation =
        new HadoopFsRelation(index, facts, columns, scala.Option.empty(), new ParquetFileFormat(),
            (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.from(
                scala.jdk.javaapi.CollectionConverters.asScala(options)),
            spark);
    return spark.baseRelationToDataFrame(relation);
  }

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

  /**
   * The condition that keeps rows whose position is in no bitmap of their file; null if bitmaps of
   * that digest are not held.
   */
  public Object liveRowsHeld(Object plan, String digest, boolean wide) {
    Object broadcast = held.get(digest);
    return broadcast == null ? null : liveRows(plan, broadcast, wide);
  }

  /**
   * The same; the bitmaps come as (length, bytes), in order of the files, and are held for the
   * next plan that needs equal ones.
   */
  public Object liveRows(Object session, Object plan, String digest, byte[] packed, boolean wide)
      throws java.io.IOException {
    Object broadcast =
        new org.apache.spark.api.java
            .JavaSparkContext(((org.apache.spark.sql.classic.SparkSession) session).sparkContext())
            .broadcast(bitmaps(packed, wide));
    held.put(digest, broadcast, packed.length);
    return liveRows(plan, broadcast, wide);
  }

  private static ArrayList bitmaps(byte[] packed, boolean wide) throws java.io.IOException {
    ArrayList bitmaps = new ArrayList();
    java.io.DataInputStream in =
        new java.io.DataInputStream(new java.io.ByteArrayInputStream(packed));
    while (in.available() > 0) {
      byte[] one = new byte[in.readInt()];
      in.readFully(one);
      if (one.length == 0) {
        bitmaps.add(null);
        continue;
      }
      java.io.DataInputStream data =
          new java.io.DataInputStream(new java.io.ByteArrayInputStream(one));
      if (wide) {
        org.roaringbitmap.longlong.Roaring64NavigableMap b =
            new org.roaringbitmap.longlong.Roaring64NavigableMap();
        b.deserializePortable(data);
        bitmaps.add(b);
      } else {
        org.roaringbitmap.RoaringBitmap b = new org.roaringbitmap.RoaringBitmap();
        b.deserialize(data);
        bitmaps.add(b);
      }
    }
    return bitmaps;
  }

  private static Object liveRows(Object plan, Object broadcast, boolean wide) {
    Attribute ordinal = null, position = null;
    scala.collection.Iterator it = ((LogicalPlan) plan).output().iterator();
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next();
      if (a.name().equals("__ice_ord")) ordinal = a;
      if (a.name().equals("__ice_pos")) position = a;
    }
    DataType bitmap = new ObjectType(wide ? org.roaringbitmap.longlong.Roaring64NavigableMap.class
                                          : org.roaringbitmap.RoaringBitmap.class);
    Expression all =
        invoke(new Literal(broadcast, new ObjectType(org.apache.spark.broadcast.Broadcast.class)),
            "value", new ObjectType(ArrayList.class), new Expression[0]);
    Expression one = invoke(all, "get", bitmap, new Expression[] {ordinal});
    Expression at = wide ? (Expression) position
                         : (Expression) new Cast(position, IntegerType$.MODULE$,
                               scala.Option.empty(), EvalMode.LEGACY());
    Expression deleted = invoke(one, "contains", BooleanType$.MODULE$, new Expression[] {at});
    return new Not(new Coalesce(IcebergPyBridge.seq(
        IcebergPyBridge.list(new Object[] {deleted, Literal$.MODULE$.apply(Boolean.FALSE)}))));
  }
  private static Expression invoke(
      Expression target, String method, DataType type, Expression[] arguments) {
    return new org.apache.spark.sql.catalyst.expressions.objects.Invoke(target, method, type,
        IcebergPyBridge.seq(IcebergPyBridge.list(arguments)), IcebergPyBridge.seq(new ArrayList()),
        true, true, true);
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
    Object manager =
        ((org.apache.spark.sql.classic.SparkSession) session).sessionState().catalogManager();
    for (Class c = manager.getClass(); c != null; c = c.getSuperclass()) {
      java.lang.reflect.Field[] fields = c.getDeclaredFields();
      for (int i = 0; i < fields.length; i++) {
        if (!scala.collection.mutable.Map.class.isAssignableFrom(fields[i].getType())) continue;
        fields[i].setAccessible(true);
        Map catalogs = scala.jdk.javaapi.CollectionConverters.asJava(
            (scala.collection.mutable.Map) fields[i].get(manager));
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
  public String sessionHandle(Object session) { return IcebergPyBridge.handleOf(session); }
}
