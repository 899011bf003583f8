import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;

/** Expressions that Python knows by their numbers, and what it is told of them, as JSON. */
public class IcebergPyExpressions {
  private final List all = new ArrayList();
  private String described;

  /** The number that an expression has from now on. */
  Integer number(Object expression) {
    all.add(expression);
    return Integer.valueOf(all.size() - 1);
  }
  Expression get(int number) { return (Expression) all.get(number); }
  void describe(Object description) {
    try {
      described = IcebergPyBridge.JSON.writeValueAsString(description);
    } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }
  public String described() { return described; }
  public Object column(int number) { return IcebergPyFrames.column(get(number)); }
}
