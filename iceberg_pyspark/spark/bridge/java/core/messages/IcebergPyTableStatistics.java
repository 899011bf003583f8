// Written from bridge/protocol by `make generate`.
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The statistics of the columns that have any. */
class IcebergPyTableStatistics {
  private final Map fields;
  IcebergPyTableStatistics(Map fields) { this.fields = fields; }
  List columns() {
    List values = (List) fields.get("columns"), items = new ArrayList();
    for (int i = 0; i < values.size(); i++)
      items.add(new IcebergPyColumnValueStatistics((Map) values.get(i)));
    return items;
  }
}
