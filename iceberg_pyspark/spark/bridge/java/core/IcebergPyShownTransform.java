// Written from bridge/protocol by `make protocol`.
import java.util.Map;

/** A field that a table is partitioned by: a function of a column, as SQL writes it. */
class IcebergPyShownTransform {
  private final Map said;
  IcebergPyShownTransform(Map said) { this.said = said; }
  String transform() { return (String) said.get("transform"); }
  String column() { return (String) said.get("column"); }
  Number number() { return (Number) said.get("number"); }
}
