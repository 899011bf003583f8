// Written from bridge/protocol by `make generate`.
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The definition of a table for Spark. */
class IcebergPyTableDefinition {
  private final Map fields;
  IcebergPyTableDefinition(Map fields) { this.fields = fields; }
  String handle() { return (String) fields.get("handle"); }
  String name() { return (String) fields.get("name"); }
  String id() { return (String) fields.get("id"); }
  String version() { return (String) fields.get("version"); }
  String schema() { return (String) fields.get("schema"); }
  String nanosSchema() { return (String) fields.get("nanos_schema"); }
  String metadataColumns() { return (String) fields.get("metadata_columns"); }
  Map properties() { return (Map) fields.get("properties"); }
  List partitioning() {
    List values = (List) fields.get("partitioning"), items = new ArrayList();
    for (int i = 0; i < values.size(); i++)
      items.add(new IcebergPyPartitionTransform((Map) values.get(i)));
    return items;
  }
  long sizeInBytes() { return ((Number) fields.get("size_in_bytes")).longValue(); }
  long rows() { return ((Number) fields.get("rows")).longValue(); }
  boolean hasColumnStatistics() {
    return ((Boolean) fields.get("has_column_statistics")).booleanValue();
  }
  List grouping() {
    List values = (List) fields.get("grouping"), items = new ArrayList();
    for (int i = 0; i < values.size(); i++)
      items.add(new IcebergPyPartitionTransform((Map) values.get(i)));
    return items;
  }
  List filterColumns() { return (List) fields.get("filter_columns"); }
  List comparedColumns() { return (List) fields.get("compared_columns"); }
  boolean acceptAnySchema() { return ((Boolean) fields.get("accept_any_schema")).booleanValue(); }
}
