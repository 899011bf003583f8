// Written from bridge/protocol by `make protocol`.
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** What Spark is told of a table. */
class IcebergPyTableFacts {
  private final Map said;
  IcebergPyTableFacts(Map said) { this.said = said; }
  String handle() { return (String) said.get("handle"); }
  String name() { return (String) said.get("name"); }
  String id() { return (String) said.get("id"); }
  String version() { return (String) said.get("version"); }
  String schema() { return (String) said.get("schema"); }
  String metadataColumns() { return (String) said.get("metadata_columns"); }
  Map properties() { return (Map) said.get("properties"); }
  List partitioning() {
    List all = (List) said.get("partitioning"), made = new ArrayList();
    for (int i = 0; i < all.size(); i++) made.add(new IcebergPyShownTransform((Map) all.get(i)));
    return made;
  }
  long sizeInBytes() { return ((Number) said.get("size_in_bytes")).longValue(); }
  long rows() { return ((Number) said.get("rows")).longValue(); }
  boolean hasColumnStatistics() {
    return ((Boolean) said.get("has_column_statistics")).booleanValue();
  }
  List grouping() {
    List all = (List) said.get("grouping"), made = new ArrayList();
    for (int i = 0; i < all.size(); i++) made.add(new IcebergPyShownTransform((Map) all.get(i)));
    return made;
  }
  List filtered() { return (List) said.get("filtered"); }
  boolean acceptAnySchema() { return ((Boolean) said.get("accept_any_schema")).booleanValue(); }
}
