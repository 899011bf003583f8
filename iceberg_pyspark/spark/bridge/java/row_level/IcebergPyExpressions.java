import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;

/** Expressions that Python knows by number, and their description as JSON. */
public class IcebergPyExpressions {
  private final List all = new ArrayList();
  private String text;

  /** Register an expression and return its number. */
  Integer number(Object expression) {
    all.add(expression);
    return Integer.valueOf(all.size() - 1);
  }
  Expression get(int number) { return (Expression) all.get(number); }
  void describe(Object description) {
    try {
      text = IcebergPyBridge.JSON.writeValueAsString(description);
    } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }
  public String description() { return text; }
  public Object column(int number) { return IcebergPyFrames.column(get(number)); }
}
