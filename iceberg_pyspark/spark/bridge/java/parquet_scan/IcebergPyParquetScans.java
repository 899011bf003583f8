import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.ObjectType;

/**
 * Builds relations of data files for Spark's own Parquet and ORC readers, and conditions that keep
 * live rows.
 */
public class IcebergPyParquetScans {
  private final IcebergPyBroadcasts broadcasts = new IcebergPyBroadcasts();

  /** Start to load the classes that read tables of files, by reading an example. */
  public void prepare(byte[] files) { IcebergPyArrowClasses.load(files); }

  /**
   * Return a DataFrame over planned files of one format, for building plans. The relation itself
   * reads nothing: `IcebergPyRule` replaces it by a scan. `description` is a `ParquetRelation` of
   * bridge/call_arguments.py, `key` is equal for
   * equal rows, and `files` is the table of files.
   */
  public Object relation(Object session, String description, String key, byte[] files)
      throws com.fasterxml.jackson.core.JsonProcessingException {
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(
        (org.apache.spark.sql.classic.SparkSession) session,
        (LogicalPlan) relationOf(session, description, key, files));
  }
  private static DataSourceV2Relation relationOf(Object session, String description, String key,
      byte[] files) throws com.fasterxml.jackson.core.JsonProcessingException {
    Map values = (Map) IcebergPyBridge.JSON.readValue(description, Map.class);
    org.apache.spark.sql.classic.SparkSession spark =
        (org.apache.spark.sql.classic.SparkSession) session;
    IcebergPyPlannedFiles plannedFiles = IcebergPyPlannedFiles.of(
        files, (List) values.get("file_constants"), (List) values.get("keys"));
    IcebergPyParquetFiles table = values.get("file_format").equals("orc")
        ? new IcebergPyOrcFiles(spark, values, key, plannedFiles)
        : new IcebergPyParquetFiles(spark, values, key, plannedFiles);
    return DataSourceV2Relation$.MODULE$.create(table, scala.Option.empty(), scala.Option.empty());
  }

  /** Return the text of a response, and a plan of such a relation as its only part. */
  public List response(Object session, String description, String key, byte[] files, String outputs,
      String text) throws com.fasterxml.jackson.core.JsonProcessingException,
                          org.apache.spark.sql.catalyst.parser.ParseException {
    List part = IcebergPyBridge.list(
        new Object[] {plan(session, description, key, files, outputs), null, new ArrayList()});
    return IcebergPyBridge.list(new Object[] {text, part});
  }
  /**
   * Return the plan of columns computed from such a relation; `outputs` are `SelectedColumn`s of
   * bridge/call_arguments.py. Renamed columns need no analysis, which would take some milliseconds.
   */
  public Object plan(Object session, String description, String key, byte[] files, String outputs)
      throws com.fasterxml.jackson.core.JsonProcessingException,
             org.apache.spark.sql.catalyst.parser.ParseException {
    org.apache.spark.sql.classic.SparkSession spark =
        (org.apache.spark.sql.classic.SparkSession) session;
    DataSourceV2Relation relation = relationOf(spark, description, key, files);
    List selections = (List) IcebergPyBridge.JSON.readValue(outputs, List.class);
    Map attributes = IcebergPyScanParts.byName((LogicalPlan) (Object) relation);
    List columns = new ArrayList();
    boolean isResolved = true;
    for (int i = 0; i < selections.size(); i++) {
      Map one = (Map) selections.get(i);
      isResolved &= one.get("column") != null;
      Object value = isResolved
          ? attributes.get(one.get("column"))
          : spark.sessionState().sqlParser().parseExpression((String) one.get("value"));
      columns.add(new Alias((Expression) value, (String) one.get("name"),
          NamedExpression$.MODULE$.newExprId(), IcebergPyBridge.seq(new ArrayList()),
          scala.Option.empty(), IcebergPyBridge.seq(new ArrayList())));
    }
    LogicalPlan plan = new Project(IcebergPyBridge.seq(columns), (LogicalPlan) (Object) relation);
    return isResolved ? plan
                      : org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(spark, plan)
                            .queryExecution()
                            .analyzed();
  }

  /**
   * Return the condition that keeps rows whose position is in no bitmap of their file; null if
   * bitmaps with this digest are not cached.
   */
  public Object cachedLiveRows(Object plan, String digest, boolean wide) {
    Object broadcast = broadcasts.get(digest);
    return broadcast == null ? null : liveRows(plan, broadcast, wide);
  }

  /**
   * Return the same condition for new bitmaps. `bitmapBytes` contains (length, bytes) of each file
   * in order; the bitmaps are cached for later plans with equal ones.
   */
  public Object liveRows(Object session, Object plan, String digest, byte[] bitmapBytes,
      boolean wide) throws java.io.IOException {
    Object broadcast =
        new org.apache.spark.api.java
            .JavaSparkContext(((org.apache.spark.sql.classic.SparkSession) session).sparkContext())
            .broadcast(bitmaps(bitmapBytes, wide));
    broadcasts.put(digest, broadcast, bitmapBytes.length);
    return liveRows(plan, broadcast, wide);
  }

  private static ArrayList bitmaps(byte[] bitmapBytes, boolean wide) throws java.io.IOException {
    ArrayList bitmaps = new ArrayList();
    java.io.DataInputStream in =
        new java.io.DataInputStream(new java.io.ByteArrayInputStream(bitmapBytes));
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
    Attribute ordinal = column(plan, "__ice_ord"), position = column(plan, "__ice_pos");
    Expression all =
        invoke(new Literal(broadcast, new ObjectType(org.apache.spark.broadcast.Broadcast.class)),
            "value", new ObjectType(ArrayList.class), new Expression[0]);
    if (!wide) return new IcebergPyLiveRows(all, ordinal, position);
    Expression bitmap =
        invoke(all, "get", new ObjectType(org.roaringbitmap.longlong.Roaring64NavigableMap.class),
            new Expression[] {ordinal});
    return IcebergPyLiveRows.notIn(bitmap, position);
  }
  /** Return the column of a plan with this name, or null if there is none. */
  static Attribute column(Object plan, String name) {
    return (Attribute) IcebergPyScanParts.byName((LogicalPlan) plan).get(name);
  }
  static Expression invoke(
      Expression target, String method, DataType type, Expression[] arguments) {
    return new org.apache.spark.sql.catalyst.expressions.objects.Invoke(target, method, type,
        IcebergPyBridge.seq(IcebergPyBridge.list(arguments)), IcebergPyBridge.seq(new ArrayList()),
        true, true, true);
  }
}
