import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.LongBinaryOperator;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeAndComment;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator;
import org.apache.spark.sql.catalyst.expressions.codegen.GeneratedClass;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.util.SerializableConfiguration;

/**
 * Conditions that keep live rows, for deletes that are read on the executors.
 *
 * Executors do not have our classes. They compile the classes that read deletes from source, like
 * the code that Spark generates, and cache them for as long.
 */
public class IcebergPyDeleteConditions {
  private final IcebergPyBroadcasts broadcasts = new IcebergPyBroadcasts();

  /**
   * Return the condition on a plan's rows. `description` is a `VectorPlaces` or `PositionPlaces` of
   * bridge/call_arguments.py; `digest` is equal for equal descriptions. Executors compile `source`
   * to read the deletes, and `finding` to find a task's probe again (java_modules.py). Plans show
   * `name`.
   */
  public Object liveRows(Object session, Object plan, String name, String digest,
      String description, String source, String finding)
      throws com.fasterxml.jackson.core.JsonProcessingException {
    SparkSession spark = (SparkSession) session;
    // Hadoop's options come from the session, where they may change
    String key = name + digest + spark.conf().getAll().hashCode();
    Object[] references = (Object[]) broadcasts.get(key);
    if (references == null) {
      Map deletes = (Map) IcebergPyBridge.JSON.readValue(description, Map.class);
      references = new Object[] {
          new JavaSparkContext(spark.sparkContext()).broadcast(places(spark, deletes)),
          code(source)};
      broadcasts.put(key, references, description.length());
    }
    Expression compilation =
        new StaticInvoke(CodeGenerator.class, new ObjectType(scala.Tuple2.class), "compile",
            IcebergPyBridge.seq(IcebergPyBridge.list(new Object[] {object(code(finding))})),
            IcebergPyBridge.seq(new java.util.ArrayList()), true, true, true, scala.Option.empty());
    Expression generatedClass = IcebergPyParquetScans.invoke(
        compilation, "_1", new ObjectType(GeneratedClass.class), new Expression[0]);
    Expression probe = IcebergPyParquetScans.invoke(generatedClass, "generate",
        new ObjectType(LongBinaryOperator.class), new Expression[] {object(references)});
    Expression file = new Cast(IcebergPyParquetScans.column(plan, "__ice_ord"), LongType$.MODULE$,
        scala.Option.empty(), EvalMode.LEGACY());
    Expression isDeleted = IcebergPyParquetScans.invoke(
        new IcebergPyTaskObject(probe, name + "(" + references[0] + ")"), "applyAsLong",
        LongType$.MODULE$,
        new Expression[] {file, IcebergPyParquetScans.column(plan, "__ice_pos")});
    return new EqualTo(isDeleted, new Literal(Long.valueOf(0), LongType$.MODULE$));
  }
  private static CodeAndComment code(String source) {
    return new CodeAndComment(source, scala.collection.immutable.Map$.MODULE$.empty());
  }
  private static Literal object(Object value) {
    return new Literal(value, new ObjectType(value.getClass()));
  }
  public Object both(Object one, Object other) {
    return new And((Expression) one, (Expression) other);
  }

  /**
   * Convert the description to classes that executors have; Hadoop's options become a
   * configuration.
   */
  private static HashMap places(SparkSession spark, Map description) {
    HashMap all = new HashMap();
    Iterator entries = description.entrySet().iterator();
    while (entries.hasNext()) {
      Map.Entry entry = (Map.Entry) entries.next();
      Object value = entry.getValue();
      all.put(entry.getKey(), value instanceof List ? array((List) value) : value);
    }
    Configuration conf = IcebergPyConfiguration.of(spark, (Map) all.remove("options"));
    all.put("conf", new SerializableConfiguration(conf));
    return all;
  }
  /** Convert strings, booleans or numbers; a list is never empty, because there are deletes. */
  private static Object array(List list) {
    if (list.get(0) instanceof String) return list.toArray(new String[list.size()]);
    if (list.get(0) instanceof Boolean) {
      boolean[] truths = new boolean[list.size()];
      for (int i = 0; i < truths.length; i++) truths[i] = ((Boolean) list.get(i)).booleanValue();
      return truths;
    }
    long[] numbers = new long[list.size()];
    for (int i = 0; i < numbers.length; i++) numbers[i] = ((Number) list.get(i)).longValue();
    return numbers;
  }
}
