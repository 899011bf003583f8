import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.Or;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType$;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.types.StructType;

/**
 * Selects conditions of a query that may skip row groups of ORC files, by statistics and bloom
 * filters: comparisons of integers, strings and dates with literals. Spark evaluates the conditions
 * themselves on every remaining row.
 *
 * ORC compares no other values as Spark does. The two zeros differ, NaN is not the largest number,
 * and a writer may have left NaN out of the bounds; null structs are not nulls of their fields;
 * timestamps are compared in the time zone of the reader.
 */
class IcebergPyOrcFilters {
  private static final int MAX_VALUES = 100;
  private static final long FIRST_DAY = LocalDate.of(1601, 1, 1).toEpochDay();
  private static final long LAST_DAY = LocalDate.of(9998, 12, 31).toEpochDay();

  /** Return filters that are weaker than all `filters` together; `columns` are the read columns. */
  static Filter[] skipping(Filter[] filters, StructType columns) {
    List out = new ArrayList();
    for (int i = 0; i < filters.length; i++) {
      Filter weaker = weaker(filters[i], columns);
      if (weaker != null) out.add(weaker);
    }
    return (Filter[]) out.toArray(new Filter[0]);
  }

  /** Return a filter that every row of `f` satisfies; null if none is known. */
  private static Filter weaker(Filter f, StructType columns) {
    if (f instanceof And) {
      Filter left = weaker(((And) f).left(), columns), right = weaker(((And) f).right(), columns);
      if (left == null) return right;
      return right == null ? left : new And(left, right);
    }
    if (f instanceof Or) {
      Filter left = weaker(((Or) f).left(), columns), right = weaker(((Or) f).right(), columns);
      return left == null || right == null ? null : new Or(left, right);
    }
    if (f instanceof EqualTo)
      return equal(((EqualTo) f).attribute(), ((EqualTo) f).value(), columns);
    if (f instanceof In) return in(((In) f).attribute(), ((In) f).values(), columns);
    if (f instanceof LessThan) {
      String name = ((LessThan) f).attribute();
      Object most = bound(name, ((LessThan) f).value(), columns, 1);
      return most == null ? null : new LessThan(name, most);
    }
    if (f instanceof LessThanOrEqual)
      return atMost(((LessThanOrEqual) f).attribute(), ((LessThanOrEqual) f).value(), columns);
    if (f instanceof GreaterThan) {
      String name = ((GreaterThan) f).attribute();
      Object least = bound(name, ((GreaterThan) f).value(), columns, -1);
      return least == null ? null : new GreaterThan(name, least);
    }
    if (f instanceof GreaterThanOrEqual)
      return atLeast(
          ((GreaterThanOrEqual) f).attribute(), ((GreaterThanOrEqual) f).value(), columns);
    return null;
  }

  private static Filter equal(String name, Object value, StructType columns) {
    if (type(name, columns) == DateType$.MODULE$) return between(name, value, value, columns);
    Object bound = bound(name, value, columns, 0);
    return bound == null ? null : new EqualTo(name, bound);
  }

  /** Return a filter for a list of values; use the bounds of long lists and of dates. */
  private static Filter in(String name, Object[] values, StructType columns) {
    List notNull = new ArrayList();
    for (int i = 0; i < values.length; i++) {
      if (values[i] == null) continue;
      if (bound(name, values[i], columns, 0) == null) return null;
      notNull.add(values[i]);
    }
    if (notNull.isEmpty()) return null;
    if (type(name, columns) != DateType$.MODULE$ && notNull.size() <= MAX_VALUES)
      return new In(name, notNull.toArray());
    return between(name, Collections.min(notNull), Collections.max(notNull), columns);
  }

  private static Filter between(String name, Object least, Object most, StructType columns) {
    Filter left = atLeast(name, least, columns), right = atMost(name, most, columns);
    return left == null || right == null ? null : new And(left, right);
  }
  private static Filter atMost(String name, Object value, StructType columns) {
    Object most = bound(name, value, columns, 1);
    return most == null ? null : new LessThanOrEqual(name, most);
  }
  private static Filter atLeast(String name, Object value, StructType columns) {
    Object least = bound(name, value, columns, -1);
    return least == null ? null : new GreaterThanOrEqual(name, least);
  }

  /**
   * Return a value for the comparison, or null if ORC compares it differently from Spark. A date
   * becomes a timestamp and a date again in the time zones of two JVMs, each of which may lack this
   * date and use the next one, so `side` moves a date by two days.
   */
  private static Object bound(String name, Object value, StructType columns, int side) {
    DataType type = type(name, columns);
    if (type == IntegerType$.MODULE$) return value instanceof Integer ? value : null;
    if (type == LongType$.MODULE$) return value instanceof Long ? value : null;
    if (type == StringType$.MODULE$)
      return value instanceof String && isOrderedAsBytes((String) value) ? value : null;
    if (type != DateType$.MODULE$) return null;
    long day;
    if (value instanceof LocalDate)
      day = ((LocalDate) value).toEpochDay();
    else if (value instanceof java.sql.Date)
      day = org.apache.spark.sql.catalyst.util.DateTimeUtils$.MODULE$.fromJavaDate(
          (java.sql.Date) value);
    else
      return null;
    return day < FIRST_DAY || day > LAST_DAY ? null : LocalDate.ofEpochDay(day + 2 * side);
  }

  /**
   * Return the type of a column with a plain name, which is not a path to a struct field; else
   * null.
   */
  private static DataType type(String name, StructType columns) {
    if (!name.matches("[A-Za-z0-9_]+") || !Arrays.asList(columns.fieldNames()).contains(name))
      return null;
    return columns.apply(name).dataType();
  }

  /**
   * Return whether a text has the same order by bytes, as Spark compares, and by UTF-16 code units,
   * as ORC compares: surrogate pairs sort before the last single code units.
   */
  private static boolean isOrderedAsBytes(String text) {
    for (int i = 0; i < text.length(); i++)
      if (text.charAt(i) >= Character.MIN_SURROGATE) return false;
    return true;
  }
}
