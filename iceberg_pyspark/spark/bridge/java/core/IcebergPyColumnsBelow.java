import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;

/** What is known of a table's columns, by what these are in a plan of its files. */
class IcebergPyColumnsBelow {
  private final List columns, statistics;
  private IcebergPyColumnsBelow(List columns, List statistics) {
    this.columns = columns;
    this.statistics = statistics;
  }

  /** `known` has the statistics by references; the plan has the columns by their names. */
  static IcebergPyColumnsBelow of(Map known, LogicalPlan plan) {
    List columns = new ArrayList(), statistics = new ArrayList();
    Map byName = known.isEmpty() ? new HashMap() : IcebergPyParts.byName(plan);
    java.util.Iterator it = known.entrySet().iterator();
    while (it.hasNext()) {
      Map.Entry one = (Map.Entry) it.next();
      String[] names = ((NamedReference) one.getKey()).fieldNames();
      if (names.length != 1 || !byName.containsKey(names[0])) continue;
      columns.add(byName.get(names[0]));
      statistics.add(one.getValue());
    }
    return new IcebergPyColumnsBelow(columns, statistics);
  }
  /** The same below a projection, by its definitions. */
  IcebergPyColumnsBelow below(Map definitions) {
    return new IcebergPyColumnsBelow(IcebergPyParts.substitute(columns, definitions), statistics);
  }
  /** By references to those columns that a relation has as they are. */
  Map of(LogicalPlan relation) {
    Map out = new HashMap();
    java.util.Set ids = IcebergPyRule.ids(relation.outputSet());
    for (int i = 0; i < columns.size(); i++) {
      Expression column = (Expression) columns.get(i);
      if (column instanceof Attribute && ids.contains(((Attribute) column).exprId()))
        out.put(Expressions.column(IcebergPyBridge.quote(((Attribute) column).name())),
            statistics.get(i));
    }
    return out;
  }
}
