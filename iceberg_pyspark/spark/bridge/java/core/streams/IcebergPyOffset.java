import org.apache.spark.sql.connector.read.streaming.Offset;

/** A place in a stream; Python writes and reads its JSON. */
public class IcebergPyOffset extends Offset {
  private final String json;
  IcebergPyOffset(String json) { this.json = json; }
  public String json() { return json; }
}
