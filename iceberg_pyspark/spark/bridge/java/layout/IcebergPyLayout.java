import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Length;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Murmur3Hash;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions;
import org.apache.spark.sql.types.BinaryType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.ObjectType;

/** Rows laid out for writing: in partitions of about a size, by hash or by range. */
public class IcebergPyLayout {
  /**
   * The rows of a DataFrame in partitions of about a size: by range where the columns have an
   * order, else by hash.
   */
  public Object rebalanced(Object session, Object frame, List columns, long bytes) {
    org.apache.spark.sql.classic.SparkSession spark =
        (org.apache.spark.sql.classic.SparkSession) session;
    List by = new ArrayList();
    for (int i = 0; i < columns.size(); i++)
      by.add(spark.expression((org.apache.spark.sql.Column) columns.get(i)));
    LogicalPlan plan = ((org.apache.spark.sql.classic.Dataset) frame).queryExecution().analyzed();
    plan = new RebalancePartitions(IcebergPyBridge.seq(by), plan, scala.Option.empty(),
        scala.Option.apply(Long.valueOf(bytes)));
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(spark, plan);
  }

  /**
   * The Murmur3 hash with seed 0 of a column's value, as other systems compute it: `kind` is long,
   * text, bytes or decimal.
   */
  public Object murmur3(Object column, String kind) {
    Expression value = expression(column);
    if (kind.equals("long"))
      return column(
          new Murmur3Hash(IcebergPyBridge.seq(IcebergPyBridge.list(new Object[] {value})), 0));
    Expression base, offset, length;
    if (kind.equals("text")) {
      base = invoke(value, "getBaseObject", new ObjectType(Object.class));
      offset = invoke(value, "getBaseOffset", LongType$.MODULE$);
      length = invoke(value, "numBytes", IntegerType$.MODULE$);
    } else {
      if (kind.equals("decimal"))
        value = invoke(
            invoke(invoke(value, "toJavaBigDecimal", new ObjectType(java.math.BigDecimal.class)),
                "unscaledValue", new ObjectType(java.math.BigInteger.class)),
            "toByteArray", BinaryType$.MODULE$);
      base = value;
      offset = new Literal(
          Long.valueOf(org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET), LongType$.MODULE$);
      length = new Length(value);
    }
    return column(new org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke(
        org.apache.spark.unsafe.hash.Murmur3_x86_32.class, IntegerType$.MODULE$, "hashUnsafeBytes2",
        IcebergPyBridge.seq(IcebergPyBridge.list(new Object[] {
            base, offset, length, new Literal(Integer.valueOf(0), IntegerType$.MODULE$)})),
        IcebergPyBridge.seq(new ArrayList()), true, true, true, scala.Option.empty()));
  }

  private static Expression invoke(Expression target, String method, DataType type) {
    return new org.apache.spark.sql.catalyst.expressions.objects.Invoke(target, method, type,
        IcebergPyBridge.seq(new ArrayList()), IcebergPyBridge.seq(new ArrayList()), true, true,
        true);
  }
  private static Expression expression(Object column) {
    return org.apache.spark.sql.classic.ExpressionUtils.expression(
        (org.apache.spark.sql.Column) column);
  }
  private static Object column(Expression expression) {
    return org.apache.spark.sql.classic.ExpressionUtils.column(expression);
  }
}
