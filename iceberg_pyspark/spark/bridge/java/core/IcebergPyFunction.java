import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** A partition transform as a function of the catalog's: what files are grouped by, and SQL's. */
class IcebergPyFunction implements UnboundFunction {
  static final String[] NAMES =
      new String[] {"bucket", "truncate", "years", "months", "days", "hours"};
  private final String name;
  IcebergPyFunction(String name) { this.name = name; }
  public String name() { return name; }
  public String description() {
    return name + (isOfTwo() ? "(number, column)" : "(column)") + ", the partition transform";
  }
  private boolean isOfTwo() { return name.equals("bucket") || name.equals("truncate"); }

  public BoundFunction bind(StructType input) {
    DataType[] types = new DataType[input.size()];
    for (int i = 0; i < types.length; i++) types[i] = input.fields()[i].dataType();
    if (types.length != (isOfTwo() ? 2 : 1))
      throw new UnsupportedOperationException(
          name + " takes " + (isOfTwo() ? "a number and a column" : "a column"));
    DataType value = types[types.length - 1];
    if (!takes(value))
      throw new UnsupportedOperationException(
          name + " of a column of type " + value.simpleString() + " is not known");
    return new IcebergPyTransform(name, types);
  }
  private boolean takes(DataType type) {
    if (isOfTwo()) return IcebergPyTransform.kindOf(type) != null && !isCutDecimal(type);
    boolean isTime = type instanceof TimestampType || type instanceof TimestampNTZType;
    return isTime || type instanceof DateType && !name.equals("hours");
  }
  /** What is cut of a decimal depends on its scale; of a time nothing is cut. */
  private boolean isCutDecimal(DataType type) {
    String kind = IcebergPyTransform.kindOf(type);
    return name.equals("truncate") && (kind.equals("decimal") || kind.equals("time"));
  }
}
