import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/** Values as Python writes them in lines of cells, a tab between two. */
class IcebergPyCells {
  static String text(String cell) {
    if (cell.indexOf('\\') < 0) return cell;
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < cell.length(); i++) {
      char c = cell.charAt(i);
      if (c == '\\') {
        c = cell.charAt(++i);
        c = c == 't' ? '\t' : c == 'n' ? '\n' : c;
      }
      out.append(c);
    }
    return out.toString();
  }
  static Object value(String cell, DataType type) {
    if (cell.length() == 0) return null;
    if (type instanceof IntegerType || type instanceof DateType) return Integer.valueOf(cell);
    if (type instanceof LongType || type instanceof TimestampType
        || type instanceof TimestampNTZType)
      return Long.valueOf(cell);
    if (type instanceof BooleanType) return Boolean.valueOf(cell);
    if (type instanceof DecimalType)
      return org.apache.spark.sql.types.Decimal.apply(new java.math.BigDecimal(cell),
          ((DecimalType) type).precision(), ((DecimalType) type).scale());
    return UTF8String.fromString(text(cell.substring(1)));
  }
}
