import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.unsafe.types.UTF8String;

/** Values of columns in responses. */
class IcebergPyValues {
  /** Convert a value from its JSON form to Spark's internal form. */
  static Object internal(Object value, DataType type) {
    if (value == null || value instanceof Boolean) return value;
    if (type instanceof IntegerType || type instanceof DateType)
      return Integer.valueOf(((Number) value).intValue());
    if (type instanceof DoubleType || type instanceof FloatType) {
      String text = ((String) value).replace("inf", "Infinity");
      double number = Double.parseDouble(text);
      return type instanceof DoubleType ? (Object) Double.valueOf(number)
                                        : (Object) Float.valueOf((float) number);
    }
    if (value instanceof Number) return Long.valueOf(((Number) value).longValue());
    if (type instanceof DecimalType)
      return Decimal.apply(new java.math.BigDecimal((String) value),
          ((DecimalType) type).precision(), ((DecimalType) type).scale());
    return UTF8String.fromString((String) value);
  }
}
