import java.util.ArrayList;
import java.util.List;

/** Rows that others must meet, as DataFrames by their numbers, and the expressions of both. */
public class IcebergPySources extends IcebergPyExpressions {
  final List sources = new ArrayList();
  public Object source(int number) { return sources.get(number); }
}
