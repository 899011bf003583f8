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
 * An object that each task makes once, in generated code. Executors do not know this class: where
 * a plan is not compiled as a whole, so that its expressions travel, each row makes the object.
 */
public class IcebergPyOncePerTask extends UnaryExpression implements java.io.Serializable {
  private final Expression made;
  private final String shown;
  /** `shown` is what plans show of it. */
  public IcebergPyOncePerTask(Expression made, String shown) {
    super();
    this.made = made;
    this.shown = shown;
  }

  public TreeNode child() { return made; }
  public TreeNode withNewChildInternal(TreeNode child) {
    return new IcebergPyOncePerTask((Expression) (Object) child, shown);
  }
  public DataType dataType() { return made.dataType(); }
  public boolean nullable() { return false; }
  public boolean foldable() { return false; }
  public String toString() { return shown; }

  public int productArity() { return 2; }
  public Object productElement(int i) { return i == 0 ? (Object) made : shown; }
  public boolean canEqual(Object other) { return other instanceof IcebergPyOncePerTask; }
  public boolean equals(Object other) {
    return other instanceof IcebergPyOncePerTask
        && made.equals(((IcebergPyOncePerTask) other).made);
  }
  public int hashCode() { return made.hashCode(); }

  public ExprCode doGenCode(CodegenContext ctx, ExprCode ev) {
    String type = CodeGenerator.javaType(dataType());
    String held = ctx.addMutableState(type, "oncePerTask", new IcebergPyNoCode(), true, true);
    ExprCode making = made.genCode(ctx);
    // in a method of its own: the rows' is to stay small
    String make = ctx.freshName("makeOncePerTask");
    make = ctx.addNewFunction(make,
        "private " + type + " " + make + "() {\n" + making.code() + "\nreturn " + making.value()
            + ";\n}\n",
        false);
    String code = "if (" + held + " == null) " + held + " = " + make + "();\n";
    return new ExprCode(
        new CodeBlock(IcebergPyBridge.seq(IcebergPyBridge.list(new Object[] {code})),
            IcebergPyBridge.seq(new ArrayList())),
        FalseLiteral$.MODULE$, JavaCode$.MODULE$.global(held, dataType()));
  }
  public Object eval(InternalRow row) { return made.eval(row); }
  public Object writeReplace() { return made; }
}
