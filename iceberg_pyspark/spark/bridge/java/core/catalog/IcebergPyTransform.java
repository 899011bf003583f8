import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.BitwiseAnd;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.CheckOverflow;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Hour;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.MakeDecimal;
import org.apache.spark.sql.catalyst.expressions.Month;
import org.apache.spark.sql.catalyst.expressions.Multiply;
import org.apache.spark.sql.catalyst.expressions.Pmod;
import org.apache.spark.sql.catalyst.expressions.PreciseTimestampConversion;
import org.apache.spark.sql.catalyst.expressions.Substring;
import org.apache.spark.sql.catalyst.expressions.Subtract;
import org.apache.spark.sql.catalyst.expressions.UnaryMinus;
import org.apache.spark.sql.catalyst.expressions.UnixDate;
import org.apache.spark.sql.catalyst.expressions.Year;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DateType$;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampNTZType$;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.types.TimestampType$;

/**
 * A partition transform of columns with known types, and its form as a Spark expression. The rule
 * replaces calls by the expression, because executors do not have this class.
 */
public class IcebergPyTransform implements ScalarFunction {
  private final String name;
  private final DataType[] types;
  private final Integer width;
  /** `width` is the width of truncate if it is not an argument, else null. */
  IcebergPyTransform(String name, DataType[] types, Integer width) {
    this.name = name;
    this.types = types;
    this.width = width;
  }
  public String name() {
    return width == null ? name : IcebergPyFunction.ofName(name, width.intValue());
  }
  /** Equal for equal functions: Spark compares the keys of two tables by this name. */
  public String canonicalName() {
    return "iceberg_pyspark." + name() + "(" + types[types.length - 1].catalogString() + ")";
  }
  /** The number comes first, if there is one. */
  public DataType[] inputTypes() {
    DataType[] argumentTypes = (DataType[]) types.clone();
    if (argumentTypes.length == 2) argumentTypes[0] = IntegerType$.MODULE$;
    return argumentTypes;
  }
  public DataType resultType() {
    if (name.equals("truncate")) return types[types.length - 1];
    return name.equals("days") ? (DataType) DateType$.MODULE$ : (DataType) IntegerType$.MODULE$;
  }
  /** Executors get null: there, this class would only name keys, which they never use. */
  public Object writeReplace() { return null; }

  public Object produceResult(InternalRow input) {
    List arguments = new ArrayList();
    DataType[] argumentTypes = inputTypes();
    for (int i = 0; i < argumentTypes.length; i++)
      arguments.add(new BoundReference(i, argumentTypes[i], true));
    return expression(arguments).eval(input);
  }

  /** Return how values of a type are hashed (specification, Appendix B); null if they are not. */
  static String kindOf(DataType type) {
    if (type instanceof ByteType || type instanceof ShortType || type instanceof IntegerType
        || type instanceof LongType)
      return "long";
    if (type instanceof DateType || type instanceof TimestampType
        || type instanceof TimestampNTZType || IcebergPyInternals.isNanos(type))
      return "time";
    if (type instanceof StringType) return "text";
    if (type instanceof BinaryType) return "bytes";
    return type instanceof DecimalType ? "decimal" : null;
  }

  Expression expression(List arguments) {
    Expression value = inMicros((Expression) arguments.get(arguments.size() - 1));
    if (name.equals("bucket")) {
      Expression positive = new BitwiseAnd(hash(value), integer(Integer.MAX_VALUE));
      return orNull(value, new Pmod(positive, (Expression) arguments.get(0)));
    }
    if (name.equals("truncate")) {
      return cut(width == null ? (Expression) arguments.get(0) : integer(width.intValue()), value);
    }
    Expression date =
        value.dataType() instanceof DateType ? value : cast(inUtc(value), DateType$.MODULE$);
    if (name.equals("days")) return date;
    if (name.equals("hours")) {
      Expression hour = new Hour(inUtc(value), scala.Option.apply("UTC"));
      return new Add(new Multiply(new UnixDate(date), integer(24)), hour);
    }
    Expression years = new Subtract(new Year(date), integer(1970));
    if (name.equals("years")) return years;
    Expression month = new Subtract(new Month(date), integer(1));
    return new Add(new Multiply(years, integer(12)), month);
  }

  private static Expression cut(Expression width, Expression value) {
    String kind = kindOf(value.dataType());
    if (kind.equals("decimal")) return cutDecimal(cast(width, LongType$.MODULE$), value);
    if (!kind.equals("long")) return new Substring(value, integer(1), width);
    Expression all = cast(value, LongType$.MODULE$);
    Expression rest = new Pmod(all, cast(width, LongType$.MODULE$));
    // As in Java, what lies below the least number is counted from the greatest.
    Expression sum = new org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke(Long.class,
        LongType$.MODULE$, "sum",
        IcebergPyBridge.seq(IcebergPyBridge.list(new Object[] {all, new UnaryMinus(rest)})),
        IcebergPyBridge.seq(new ArrayList()), true, true, true, scala.Option.empty());
    return cast(sum, value.dataType());
  }

  /**
   * The width is in units of the unscaled value; null if the result has too many digits. Spark's
   * own subtraction of decimals with 38 digits would round.
   */
  private static Expression cutDecimal(Expression width, Expression value) {
    DecimalType type = (DecimalType) value.dataType();
    DecimalType wide = new DecimalType(38, type.scale());
    Expression rest =
        new Pmod(cast(value, wide), new MakeDecimal(width, wide.precision(), wide.scale(), false));
    Expression difference = new org.apache.spark.sql.catalyst.expressions.objects.Invoke(value,
        "$minus", wide, IcebergPyBridge.seq(IcebergPyBridge.list(new Object[] {rest})),
        IcebergPyBridge.seq(new ArrayList()), true, true, true);
    return new CheckOverflow(difference, type, true);
  }

  private static Expression hash(Expression value) {
    String kind = kindOf(value.dataType());
    if (value.dataType() instanceof DateType)
      value = new UnixDate(value);
    else if (kind.equals("time"))
      value = new PreciseTimestampConversion(value, value.dataType(), LongType$.MODULE$);
    if (!kind.equals("long") && !kind.equals("time")) return IcebergPyMurmur3.of(value, kind);
    return IcebergPyMurmur3.of(cast(value, LongType$.MODULE$), "long");
  }
  /** Round nanoseconds down: their transforms are those of their microseconds. */
  private static Expression inMicros(Expression time) {
    if (!IcebergPyInternals.isNanos(time.dataType())) return time;
    boolean zoned = time.dataType().typeName().startsWith("timestamp_ltz");
    return cast(
        time, zoned ? (DataType) TimestampType$.MODULE$ : (DataType) TimestampNTZType$.MODULE$);
  }
  /** Convert a timestamp to the local time in UTC, whatever the session's time zone is. */
  private static Expression inUtc(Expression time) {
    if (!(time.dataType() instanceof TimestampType)) return time;
    Expression micros = new PreciseTimestampConversion(time, time.dataType(), LongType$.MODULE$);
    return new PreciseTimestampConversion(micros, LongType$.MODULE$, TimestampNTZType$.MODULE$);
  }
  private static Expression orNull(Expression value, Expression otherwise) {
    return new If(new IsNull(value), new Literal(null, otherwise.dataType()), otherwise);
  }
  private static Expression cast(Expression value, DataType type) {
    return value.dataType().equals(type)
        ? value
        : new Cast(value, type, scala.Option.apply("UTC"), EvalMode.LEGACY());
  }
  private static Expression integer(int value) {
    return new Literal(Integer.valueOf(value), IntegerType$.MODULE$);
  }
}
