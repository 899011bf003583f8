import java.util.ArrayList;
import java.util.List;

/** Sources as numbered DataFrames, and the expressions of their keys. */
public class IcebergPySources extends IcebergPyExpressions {
  final List sources = new ArrayList();
  public Object source(int number) { return sources.get(number); }
}
