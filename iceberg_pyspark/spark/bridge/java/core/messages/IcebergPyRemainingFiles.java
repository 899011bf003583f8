// Written from bridge/protocol by `make generate`.
import java.util.List;
import java.util.Map;

/** The locations of the remaining files, as the table has them; None: all files remain. */
class IcebergPyRemainingFiles {
  private final Map fields;
  IcebergPyRemainingFiles(Map fields) { this.fields = fields; }
  List locations() { return (List) fields.get("locations"); }
}
