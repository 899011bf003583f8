import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/**
 * The statistics of a table's columns, by the columns of a plan of the table's files. The
 * statistics describe all rows of the table: for files that a filter has selected, the filter would
 * count twice.
 */
class IcebergPyPlanStatistics {
  private final List columns, statistics;
  private final long rows;
  private IcebergPyPlanStatistics(List columns, List statistics, long rows) {
    this.columns = columns;
    this.statistics = statistics;
    this.rows = rows;
  }

  /** Return the statistics of a relation's table; `plan` has the table's columns by name. */
  static IcebergPyPlanStatistics of(LogicalPlan of, LogicalPlan plan) {
    List columns = new ArrayList(), statistics = new ArrayList();
    Object scanned =
        of instanceof DataSourceV2ScanRelation ? ((DataSourceV2ScanRelation) of).scan() : null;
    if (!(scanned instanceof IcebergPyScan))
      return new IcebergPyPlanStatistics(columns, statistics, 0);
    IcebergPyScan scan = (IcebergPyScan) scanned;
    Map statisticsByColumn = scan.columnStatistics();
    Map byName = statisticsByColumn.isEmpty() ? new HashMap() : IcebergPyScanParts.byName(plan);
    java.util.Iterator it = statisticsByColumn.entrySet().iterator();
    while (it.hasNext()) {
      Map.Entry one = (Map.Entry) it.next();
      String[] names = ((NamedReference) one.getKey()).fieldNames();
      if (names.length != 1 || !byName.containsKey(names[0])) continue;
      columns.add(byName.get(names[0]));
      statistics.add(one.getValue());
    }
    return new IcebergPyPlanStatistics(columns, statistics, scan.table.rows());
  }
  /** Return the statistics for the plan below a projection with these definitions. */
  IcebergPyPlanStatistics inChild(Map definitions) {
    return new IcebergPyPlanStatistics(
        IcebergPyScanParts.substitute(columns, definitions), statistics, rows);
  }
  /** Return the statistics of the relation's own columns, if it has all `rows` of the table. */
  Map of(LogicalPlan relation, long count) {
    Map out = new HashMap();
    if (count != rows) return out;
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
