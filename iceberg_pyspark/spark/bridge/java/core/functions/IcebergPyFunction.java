import java.util.Arrays;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** A partition transform as a catalog function, for SQL and for the grouping of files. */
class IcebergPyFunction implements UnboundFunction {
  static final String[] NAMES =
      new String[] {"bucket", "truncate", "years", "months", "days", "hours"};
  private static final Pattern WITH_WIDTH = Pattern.compile("truncate\\[([1-9][0-9]{0,9})\\]");
  private final String name;
  /** The width of truncate if the function's name contains it, else null. */
  private final Integer width;
  private IcebergPyFunction(String name, Integer width) {
    this.name = name;
    this.width = width;
  }
  /** Return the function with this name, or null if there is none. */
  static IcebergPyFunction ofName(String name) {
    if (Arrays.asList(NAMES).contains(name)) return new IcebergPyFunction(name, null);
    Matcher matcher = WITH_WIDTH.matcher(name);
    if (!matcher.matches() || Long.parseLong(matcher.group(1)) > Integer.MAX_VALUE) return null;
    return new IcebergPyFunction("truncate", Integer.valueOf(matcher.group(1)));
  }
  /** Return the function name of a transform with a number, such as "truncate[4]". */
  static String ofName(String transform, int number) { return transform + "[" + number + "]"; }
  public String name() { return width == null ? name : ofName(name, width.intValue()); }
  public String description() {
    return name + (isOfTwo() ? "(number, column)" : "(column)") + ", the partition transform";
  }
  private boolean isOfTwo() {
    return width == null && (name.equals("bucket") || name.equals("truncate"));
  }

  public BoundFunction bind(StructType input) {
    DataType[] types = new DataType[input.size()];
    for (int i = 0; i < types.length; i++) types[i] = input.fields()[i].dataType();
    if (types.length != (isOfTwo() ? 2 : 1))
      throw new UnsupportedOperationException(
          name + " takes " + (isOfTwo() ? "a number and a column" : "a column"));
    DataType value = types[types.length - 1];
    if (!accepts(value))
      throw new UnsupportedOperationException(
          name + " of a column of type " + value.simpleString() + " is not known");
    return new IcebergPyTransform(name, types, width);
  }
  private boolean accepts(DataType type) {
    String kind = IcebergPyTransform.kindOf(type);
    if (name.equals("bucket")) return kind != null;
    if (name.equals("truncate")) return kind != null && !kind.equals("time");
    boolean isTime = type instanceof TimestampType || type instanceof TimestampNTZType
        || IcebergPyInternals.isNanos(type);
    return isTime || type instanceof DateType && !name.equals("hours");
  }
}
