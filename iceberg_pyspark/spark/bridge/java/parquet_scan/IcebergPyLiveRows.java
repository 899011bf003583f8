import java.util.ArrayList;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.TernaryExpression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeBlock;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.expressions.codegen.FalseLiteral$;
import org.apache.spark.sql.catalyst.expressions.codegen.JavaCode$;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.BooleanType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.ObjectType;

/**
 * Whether a row is in no 32-bit bitmap of its file: of the list of bitmaps, the number of the file,
 * and the row's position.
 *
 * A task reads the rows of a file in the order of their positions, so generated code compares each
 * position with the next deleted one, and looks into the bitmap only behind it. Executors do not
 * have this class: in plans that are not compiled as a whole, each row is looked up in its bitmap.
 */
public class IcebergPyLiveRows extends TernaryExpression implements java.io.Serializable {
  private static final String BITMAP = "org.roaringbitmap.RoaringBitmap";
  private static final String ITERATOR = "org.roaringbitmap.PeekableIntIterator";
  private final Expression bitmaps;
  private final Expression file;
  private final Expression position;
  public IcebergPyLiveRows(Expression bitmaps, Expression file, Expression position) {
    super();
    this.bitmaps = bitmaps;
    this.file = file;
    this.position = position;
  }

  public TreeNode first() { return bitmaps; }
  public TreeNode second() { return file; }
  public TreeNode third() { return position; }
  public TreeNode withNewChildrenInternal(TreeNode first, TreeNode second, TreeNode third) {
    return new IcebergPyLiveRows(
        (Expression) (Object) first, (Expression) (Object) second, (Expression) (Object) third);
  }
  public DataType dataType() { return BooleanType$.MODULE$; }
  public boolean nullable() { return false; }
  public boolean foldable() { return false; }
  public String toString() { return "live_rows(" + bitmaps + ", " + file + ", " + position + ")"; }

  public int productArity() { return 3; }
  public Object productElement(int i) { return i == 0 ? bitmaps : i == 1 ? file : position; }
  public boolean canEqual(Object other) { return other instanceof IcebergPyLiveRows; }
  public boolean equals(Object other) {
    if (!(other instanceof IcebergPyLiveRows)) return false;
    IcebergPyLiveRows that = (IcebergPyLiveRows) other;
    return bitmaps.equals(that.bitmaps) && file.equals(that.file) && position.equals(that.position);
  }
  public int hashCode() {
    return 31 * (31 * bitmaps.hashCode() + file.hashCode()) + position.hashCode();
  }

  public ExprCode doGenCode(CodegenContext ctx, ExprCode ev) {
    ExprCode ofFile = file.genCode(ctx), ofPosition = position.genCode(ctx);
    // the number of the file plus 1, its deleted positions from `next` on, the last position asked
    String opened = variable(ctx, "int", "openedFile");
    String positions = variable(ctx, ITERATOR, "deletedPositions");
    String next = variable(ctx, "long", "nextDeleted");
    String reached = variable(ctx, "long", "reachedPosition");
    ExprCode all = bitmaps.genCode(ctx);
    String open = ctx.freshName("openBitmap"), skip = ctx.freshName("skipDeleted");
    String peek = positions + ".peekNext() & 0xffffffffL";
    open = ctx.addNewFunction(open,
        "private void " + open + "(int file) {\n" + all.code() + "\n" + BITMAP + " bitmap = ("
            + BITMAP + ") ((java.util.ArrayList) " + all.value() + ").get(file);\n" + opened
            + " = file + 1;\nif (bitmap == null || bitmap.isEmpty()) {\n" + next
            + " = Long.MAX_VALUE;\n} else {\n" + positions + " = bitmap.getIntIterator();\n"
            + next + " = " + peek + ";\n}\n}\n",
        false);
    skip = ctx.addNewFunction(skip,
        "private void " + skip + "(long to) {\nif (to <= 0xffffffffL) " + positions
            + ".advanceIfNeeded((int) to);\n" + next + " = to <= 0xffffffffL && " + positions
            + ".hasNext() ? " + peek + " : Long.MAX_VALUE;\n}\n",
        false);
    String live = ctx.freshName("isLive"), at = ofPosition.value().toString();
    String number = ofFile.value().toString();
    String code = ofFile.code() + "\n" + ofPosition.code() + "\nboolean " + live + " = true;\n"
        + "if (!(" + ofFile.isNull() + ") && !(" + ofPosition.isNull() + ")) {\nif (" + opened
        + " != " + number + " + 1 || " + at + " < " + reached + ") " + open + "(" + number
        + ");\nif (" + next + " < " + at + ") " + skip + "(" + at + ");\n" + reached + " = " + at
        + ";\n" + live + " = " + next + " != " + at + ";\n}\n";
    return new ExprCode(
        new CodeBlock(IcebergPyBridge.seq(IcebergPyBridge.list(new Object[] {code})),
            IcebergPyBridge.seq(new ArrayList())),
        FalseLiteral$.MODULE$, JavaCode$.MODULE$.variable(live, dataType()));
  }
  private static String variable(CodegenContext ctx, String type, String name) {
    return ctx.addMutableState(type, name, new IcebergPyEmptyCode(), true, true);
  }

  public Object eval(InternalRow row) { return lookUp().eval(row); }
  public Object writeReplace() { return lookUp(); }
  private Expression lookUp() {
    Expression bitmap = IcebergPyParquetScans.invoke(bitmaps, "get",
        new ObjectType(org.roaringbitmap.RoaringBitmap.class), new Expression[] {file});
    Expression at =
        new Cast(position, IntegerType$.MODULE$, scala.Option.empty(), EvalMode.LEGACY());
    return notIn(bitmap, at);
  }
  /** Return the condition that the position is not in the bitmap, which may be null. */
  static Expression notIn(Expression bitmap, Expression position) {
    Expression isDeleted = IcebergPyParquetScans.invoke(
        bitmap, "contains", BooleanType$.MODULE$, new Expression[] {position});
    return new Not(new Coalesce(IcebergPyBridge.seq(
        IcebergPyBridge.list(new Object[] {isDeleted, Literal$.MODULE$.apply(Boolean.FALSE)}))));
  }
}
