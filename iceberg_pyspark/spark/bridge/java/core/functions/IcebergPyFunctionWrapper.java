import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.DataType;

/** A call that Spark must neither move nor refuse: it sees the arguments only. */
public class IcebergPyFunctionWrapper extends Expression {
  final Expression function;
  private final scala.collection.immutable.Seq arguments;
  IcebergPyFunctionWrapper(Expression function, scala.collection.immutable.Seq arguments) {
    super();
    this.function = function;
    this.arguments = arguments;
  }

  public scala.collection.immutable.Seq children() { return arguments; }
  public TreeNode withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return new IcebergPyFunctionWrapper(function, children);
  }
  public DataType dataType() { return function.dataType(); }
  public boolean nullable() { return function.nullable(); }
  public boolean foldable() { return false; }
  public String toString() { return function.toString(); }
  public String sql() { return function.sql(); }

  public int productArity() { return 2; }
  public Object productElement(int i) { return i == 0 ? (Object) function : arguments; }
  public boolean canEqual(Object other) { return other instanceof IcebergPyFunctionWrapper; }
  public boolean equals(Object other) {
    return other instanceof IcebergPyFunctionWrapper
        && function.equals(((IcebergPyFunctionWrapper) other).function)
        && arguments.equals(((IcebergPyFunctionWrapper) other).arguments);
  }
  public int hashCode() { return Arrays.hashCode(new Object[] {function, arguments}); }

  public Object eval(InternalRow row) { throw new UnsupportedOperationException(toString()); }
  public ExprCode doGenCode(CodegenContext ctx, ExprCode ev) {
    throw new UnsupportedOperationException(toString());
  }
}
