import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNaN;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.StartsWith;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.types.UTF8String;

/** Describes Spark's conditions and values for Python; unknown ones are the operator "other". */
class IcebergPyFilters {
  static Map node(String op, Object[] children) {
    return IcebergPyRequests.operator(op, Arrays.asList(children));
  }

  static Map describe(Expression e) {
    if (e instanceof And)
      return node("and",
          new Object[] {describe((Expression) (Object) ((And) e).left()),
              describe((Expression) (Object) ((And) e).right())});
    if (e instanceof Or)
      return node("or",
          new Object[] {describe((Expression) (Object) ((Or) e).left()),
              describe((Expression) (Object) ((Or) e).right())});
    if (e instanceof Not)
      return node("not", new Object[] {describe((Expression) (Object) ((Not) e).child())});
    if (e instanceof BinaryComparison)
      return node(e.getClass().getSimpleName(),
          new Object[] {describe((Expression) (Object) ((BinaryComparison) e).left()),
              describe((Expression) (Object) ((BinaryComparison) e).right())});
    if (e instanceof IsNull)
      return node("is_null", new Object[] {describe((Expression) (Object) ((IsNull) e).child())});
    if (e instanceof IsNotNull)
      return node(
          "not_null", new Object[] {describe((Expression) (Object) ((IsNotNull) e).child())});
    if (e instanceof IsNaN)
      return node("is_nan", new Object[] {describe((Expression) (Object) ((IsNaN) e).child())});
    if (e instanceof StartsWith)
      return node("starts_with",
          new Object[] {describe((Expression) (Object) ((StartsWith) e).left()),
              describe((Expression) (Object) ((StartsWith) e).right())});
    if (e instanceof In) {
      List args = new ArrayList();
      args.add(describe((Expression) (Object) ((In) e).value()));
      scala.collection.Iterator it = ((In) e).list().iterator();
      while (it.hasNext()) args.add(describe((Expression) it.next()));
      return node("in", args.toArray());
    }
    if (e instanceof InSet) {
      List args = new ArrayList();
      args.add(describe((Expression) (Object) ((InSet) e).child()));
      scala.collection.Iterator it = ((InSet) e).hset().iterator();
      while (it.hasNext())
        args.add(literal(it.next(), ((Expression) (Object) ((InSet) e).child()).dataType()));
      return node("in", args.toArray());
    }
    if (e instanceof Literal) return literal(((Literal) e).value(), ((Literal) e).dataType());
    List path = path(e);
    return path == null ? node("other", new Object[0]) : IcebergPyRequests.columnPath(path);
  }
  /** Return the names from a column down to a field; null for any other expression. */
  private static List path(Expression e) {
    List path = null;
    if (e instanceof Attribute) {
      path = new ArrayList();
      path.add(((Attribute) e).name());
    } else if (e instanceof GetStructField) {
      path = path((Expression) (Object) ((GetStructField) e).child());
      if (path != null) path.add(((GetStructField) e).extractFieldName());
    }
    return path;
  }

  static Map literal(Object value, DataType type) {
    Object plain = value;
    if (value instanceof UTF8String)
      plain = value.toString();
    else if (value instanceof org.apache.spark.sql.types.Decimal)
      plain = ((org.apache.spark.sql.types.Decimal) value).toJavaBigDecimal().toPlainString();
    else if (value instanceof byte[]) {
      StringBuilder hex = new StringBuilder();
      byte[] bytes = (byte[]) value;
      for (int i = 0; i < bytes.length; i++)
        hex.append(Character.forDigit((bytes[i] >> 4) & 15, 16))
            .append(Character.forDigit(bytes[i] & 15, 16));
      plain = hex.toString();
    } else if (IcebergPyInternals.isNanos(type) && value != null)
      plain = IcebergPyInternals.nanosOf(value);
    else if (value instanceof Double || value instanceof Float)
      plain = String.valueOf(value);
    else if (!(value == null || value instanceof Number || value instanceof Boolean))
      return node("other", new Object[0]);
    return IcebergPyRequests.literalValue(type.typeName(), plain);
  }
}
