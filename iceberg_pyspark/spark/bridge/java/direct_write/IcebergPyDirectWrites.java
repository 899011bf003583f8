import java.util.List;
import java.util.Map;

/** Writes whose files stay where tasks put them. */
public class IcebergPyDirectWrites {
  /**
   * Return the commit protocol of one write; `description` is a `DirectFiles` of
   * call_arguments.py.
   */
  public Object commit(Object session, String description) throws java.io.IOException {
    IcebergPyExecutorJars.send(
        (org.apache.spark.sql.classic.SparkSession) session, IcebergPyDirectCommit.class);
    Map files = (Map) IcebergPyBridge.JSON.readValue(description, Map.class);
    IcebergPyDirectNames names = new IcebergPyDirectNames(texts(files.get("fields")),
        texts(files.get("kinds")), Boolean.TRUE.equals(files.get("hashed")),
        Boolean.TRUE.equals(files.get("has_parts")), (String) files.get("context"));
    return new IcebergPyDirectCommit(
        (String) files.get("folder"), (String) files.get("write"), names);
  }
  /** Return the files of successful attempts, as JSON. */
  public String files(Object commit) throws java.io.IOException {
    return IcebergPyBridge.JSON.writeValueAsString(((IcebergPyDirectCommit) commit).files());
  }

  private static String[] texts(Object list) {
    return (String[]) ((List) list).toArray(new String[0]);
  }
}
