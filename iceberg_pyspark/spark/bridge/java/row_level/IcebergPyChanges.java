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

/** Values that rows are to get, and the rows that a row-level operation changes. */
public class IcebergPyChanges {
  /**
   * The types of values, and whether Spark would store them in columns of other types: [type,
   * whether] of each. `described` has a list of `Storing` of bridge/calls.py.
   */
  public String storable(Object server, Object session, Object frame, Object target, Object source,
      String described) throws JsonProcessingException {
    IcebergPyRowValues values = new IcebergPyRowValues(session, frame, target, source);
    List storings = (List) IcebergPyObjects.read(server, described);
    Map sides = new LinkedHashMap();
    for (int i = 0; i < storings.size(); i++) {
      Object side = ((Map) storings.get(i)).get("side");
      if (!sides.containsKey(side)) sides.put(side, new ArrayList());
      ((List) sides.get(side)).add(((Map) storings.get(i)).get("value"));
    }
    Map resolvedBySide = new HashMap();
    Iterator each = sides.keySet().iterator();
    while (each.hasNext()) {
      Object side = each.next();
      resolvedBySide.put(side, values.resolved((List) sides.get(side), (String) side).iterator());
    }
    List out = new ArrayList();
    for (int i = 0; i < storings.size(); i++) {
      Map one = (Map) storings.get(i);
      DataType has =
          ((Expression) ((Iterator) resolvedBySide.get(one.get("side"))).next()).dataType();
      DataType columnType = DataType.fromJson((String) one.get("type"));
      out.add(IcebergPyBridge.list(new Object[] {
          has.json(), Boolean.valueOf(Cast$.MODULE$.canANSIStoreAssign(has, columnType))}));
    }
    return IcebergPyBridge.JSON.writeValueAsString(out);
  }

  /** Values as columns of a frame by ids instead of names, so that they mean the same in a join. */
  public IcebergPyExpressions resolved(
      Object server, Object session, Object frame, String described) {
    List expressions = new IcebergPyRowValues(session, frame, frame, null)
                           .resolved((List) IcebergPyObjects.read(server, described), null);
    IcebergPyExpressions out = new IcebergPyExpressions();
    for (int i = 0; i < expressions.size(); i++) out.number(expressions.get(i));
    return out;
  }

  /**
   * For each row of a frame the first change that is about it: `described` is a `ChangedRows` of
   * bridge/calls.py, `target` are the table's rows in the frame, and `source` the other ones.
   */
  public Object changed(
      Object server, Object session, Object frame, Object target, Object source, String described) {
    Map changed = (Map) IcebergPyObjects.read(server, described);
    IcebergPyChangedRows rows =
        new IcebergPyChangedRows(new IcebergPyRowValues(session, frame, target, source),
            (List) changed.get("changes"), (List) changed.get("columns"));
    return IcebergPyFrames.frame(session, rows.of(IcebergPyFrames.plan(frame)));
  }
}
