import com.fasterxml.jackson.core.JsonProcessingException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.types.DataType;

/** Computes new values of rows, and the rows that a row-level operation changes. */
public class IcebergPyChanges {
  /**
   * Return the type of each value, and whether Spark can store it in a column of another type, as
   * [type, boolean]. `description` is a list of `StoredValue` of bridge/calls.py.
   */
  public String storeTypes(Object server, Object session, Object frame, Object target,
      Object source, String description) throws JsonProcessingException {
    IcebergPyRowValues values = new IcebergPyRowValues(session, frame, target, source);
    List storings = (List) IcebergPyObjects.read(server, description);
    Map sides = new LinkedHashMap();
    for (int i = 0; i < storings.size(); i++) {
      Object side = ((Map) storings.get(i)).get("side");
      if (!sides.containsKey(side)) sides.put(side, new ArrayList());
      ((List) sides.get(side)).add(((Map) storings.get(i)).get("value"));
    }
    Map expressionsBySide = new HashMap();
    Iterator each = sides.keySet().iterator();
    while (each.hasNext()) {
      Object side = each.next();
      expressionsBySide.put(side, values.resolve((List) sides.get(side), (String) side).iterator());
    }
    List out = new ArrayList();
    for (int i = 0; i < storings.size(); i++) {
      Map one = (Map) storings.get(i);
      DataType has =
          ((Expression) ((Iterator) expressionsBySide.get(one.get("side"))).next()).dataType();
      DataType columnType = DataType.fromJson((String) one.get("type"));
      out.add(IcebergPyBridge.list(new Object[] {
          has.json(), Boolean.valueOf(Cast$.MODULE$.canANSIStoreAssign(has, columnType))}));
    }
    return IcebergPyBridge.JSON.writeValueAsString(out);
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
   * `ChangedRows` of bridge/calls.py; `target` has the table's rows in the frame, `source` the
   * others.
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
