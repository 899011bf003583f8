// Written from bridge/protocol by `make generate`.
import java.util.Map;

/** The number of rows that a batch of a stream has written; 0 if the table has it already. */
class IcebergPyEpochRows {
  private final Map fields;
  IcebergPyEpochRows(Map fields) { this.fields = fields; }
  long rows() { return ((Number) fields.get("rows")).longValue(); }
}
