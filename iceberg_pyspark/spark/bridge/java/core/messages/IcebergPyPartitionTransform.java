// Written from bridge/protocol by `make generate`.
import java.util.Map;

/** A partition field: a transform of a column, as SQL writes it. */
class IcebergPyPartitionTransform {
  private final Map fields;
  IcebergPyPartitionTransform(Map fields) { this.fields = fields; }
  String transform() { return (String) fields.get("transform"); }
  String column() { return (String) fields.get("column"); }
  Number number() { return (Number) fields.get("number"); }
}
