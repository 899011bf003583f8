import java.util.ArrayList;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnaryExpression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeBlock;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.expressions.codegen.FalseLiteral$;
import org.apache.spark.sql.catalyst.expressions.codegen.JavaCode$;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.DataType;

/**
 * An object that each task creates once, in generated code. Executors do not have this class: if a
 * plan is not compiled as a whole, and its expressions are sent to executors, the object is created
 * for each row.
 */
public class IcebergPyTaskObject extends UnaryExpression implements java.io.Serializable {
  private final Expression value;
  private final String text;
  /** `text` is how plans show this expression. */
  public IcebergPyTaskObject(Expression value, String text) {
    super();
    this.value = value;
    this.text = text;
  }

  public TreeNode child() { return value; }
  public TreeNode withNewChildInternal(TreeNode child) {
    return new IcebergPyTaskObject((Expression) (Object) child, text);
  }
  public DataType dataType() { return value.dataType(); }
  public boolean nullable() { return false; }
  public boolean foldable() { return false; }
  public String toString() { return text; }

  public int productArity() { return 2; }
  public Object productElement(int i) { return i == 0 ? (Object) value : text; }
  public boolean canEqual(Object other) { return other instanceof IcebergPyTaskObject; }
  public boolean equals(Object other) {
    return other instanceof IcebergPyTaskObject
        && value.equals(((IcebergPyTaskObject) other).value);
  }
  public int hashCode() { return value.hashCode(); }

  public ExprCode doGenCode(CodegenContext ctx, ExprCode ev) {
    String type = CodeGenerator.javaType(dataType());
    String variable = ctx.addMutableState(type, "taskObject", new IcebergPyEmptyCode(), true, true);
    ExprCode initialCode = value.genCode(ctx);
    // in a separate method, so that the method for rows stays small
    String make = ctx.freshName("makeTaskObject");
    make = ctx.addNewFunction(make,
        "private " + type + " " + make + "() {\n" + initialCode.code() + "\nreturn "
            + initialCode.value() + ";\n}\n",
        false);
    String code = "if (" + variable + " == null) " + variable + " = " + make + "();\n";
    return new ExprCode(
        new CodeBlock(IcebergPyBridge.seq(IcebergPyBridge.list(new Object[] {code})),
            IcebergPyBridge.seq(new ArrayList())),
        FalseLiteral$.MODULE$, JavaCode$.MODULE$.global(variable, dataType()));
  }
  public Object eval(InternalRow row) { return value.eval(row); }
  public Object writeReplace() { return value; }
}
