import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** Computes new values of rows, and the rows that a row-level operation changes. */
public class IcebergPyChanges {
  /**
   * Return the values of whole columns after each change, as Spark's UPDATE assigns them. The
   * description has the number of each column's value by the column's name, for each change.
   * `description` is an `AssignedColumns` of bridge/call_arguments.py.
   */
  public IcebergPyExpressions assign(Object server, Object session, Object frame, Object target,
      Object source, String description) {
    IcebergPyRowValues values = new IcebergPyRowValues(session, frame, target, source);
    Map all = (Map) IcebergPyObjects.read(server, description);
    IcebergPyAssignedColumns columns = new IcebergPyAssignedColumns(
        (String) all.get("table"), (StructType) DataType.fromJson((String) all.get("schema")));
    DataSourceV2Relation relation =
        DataSourceV2Relation$.MODULE$.create(columns, scala.Option.empty(), scala.Option.empty());
    Map columnByName = IcebergPyRowValues.byName(relation), rowById = new HashMap();
    for (int i = 0; i < relation.output().size(); i++) {
      Attribute column = (Attribute) relation.output().apply(i);
      Object inRow = values.rows.get(column.name());
      if (inRow != null) rowById.put(column.exprId(), inRow);
    }
    IcebergPyExpressions out = new IcebergPyExpressions();
    List changes = (List) all.get("changes"), numbers = new ArrayList();
    for (int i = 0; i < changes.size(); i++) {
      List paths = (List) ((Map) changes.get(i)).get("paths"), assignments = new ArrayList();
      List given = values.resolve(
          (List) ((Map) changes.get(i)).get("values"), (String) ((Map) changes.get(i)).get("side"));
      for (int n = 0; n < paths.size(); n++)
        assignments.add(
            new Assignment(key((List) paths.get(n), columnByName), (Expression) given.get(n)));
      UpdateTable update = (UpdateTable) IcebergPyAssignments.assign(
          new UpdateTable(relation, IcebergPyBridge.seq(assignments), scala.Option.empty()),
          columns);
      if (!update.aligned()) throw new IllegalStateException("Spark has not assigned " + update);
      Map numberByName = new HashMap();
      for (int n = 0; n < paths.size(); n++) {
        Object name = ((List) paths.get(n)).get(0);
        int at = relation.output().indexOf(columnByName.get(name));
        Expression value =
            (Expression) (Object) ((Assignment) update.assignments().apply(at)).value();
        numberByName.put(name, out.number(IcebergPyRule.substitute(value, rowById)));
      }
      numbers.add(numberByName);
    }
    out.describe(numbers);
    return out;
  }
  private static Expression key(List path, Map columnByName) {
    Expression key = (Expression) columnByName.get(path.get(0));
    for (int i = 1; i < path.size(); i++) {
      String name = (String) path.get(i);
      int field = ((StructType) key.dataType()).fieldIndex(name);
      key = new GetStructField(key, field, scala.Option.apply(name));
    }
    return key;
  }

  /**
   * Resolve values as columns of a frame by ids, which keep their meaning in a join, unlike names.
   */
  public IcebergPyExpressions resolve(
      Object server, Object session, Object frame, String description) {
    List expressions = new IcebergPyRowValues(session, frame, frame, null)
                           .resolve((List) IcebergPyObjects.read(server, description), null);
    IcebergPyExpressions out = new IcebergPyExpressions();
    for (int i = 0; i < expressions.size(); i++) out.number(expressions.get(i));
    return out;
  }

  /**
   * Apply to each row of a frame the first change that matches the row. `description` is a
   * `ChangedRows` of bridge/call_arguments.py; `target` has the table's rows in the frame, `source`
   * the others.
   */
  public Object change(Object server, Object session, Object frame, Object target, Object source,
      String description) {
    Map changes = (Map) IcebergPyObjects.read(server, description);
    IcebergPyChangedRows rows =
        new IcebergPyChangedRows(new IcebergPyRowValues(session, frame, target, source),
            (List) changes.get("changes"), (List) changes.get("columns"));
    return IcebergPyFrames.frame(session, rows.of(IcebergPyFrames.plan(frame)));
  }
}
