import java.util.ArrayList;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Length;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Murmur3Hash;
import org.apache.spark.sql.types.BinaryType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.ObjectType;

/** Murmur3 with seed 0, as the specification's Appendix B defines it, as a Spark expression. */
class IcebergPyMurmur3 {
  /** Return the hash of a value; `kind` is long, text, bytes or decimal. */
  static Expression of(Expression value, String kind) {
    if (kind.equals("long"))
      return new Murmur3Hash(IcebergPyBridge.seq(IcebergPyBridge.list(new Object[] {value})), 0);
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
    return new org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke(
        org.apache.spark.unsafe.hash.Murmur3_x86_32.class, IntegerType$.MODULE$, "hashUnsafeBytes2",
        IcebergPyBridge.seq(IcebergPyBridge.list(new Object[] {
            base, offset, length, new Literal(Integer.valueOf(0), IntegerType$.MODULE$)})),
        IcebergPyBridge.seq(new ArrayList()), true, true, true, scala.Option.empty());
  }

  private static Expression invoke(Expression target, String method, DataType type) {
    return new org.apache.spark.sql.catalyst.expressions.objects.Invoke(target, method, type,
        IcebergPyBridge.seq(new ArrayList()), IcebergPyBridge.seq(new ArrayList()), true, true,
        true);
  }
}
