import java.util.Map;
import org.apache.spark.sql.connector.catalog.StagedTable;

/**
 * A table that is nothing yet but a handle that Python knows, until its rows are written and it is
 * committed.
 */
class IcebergPyStagedTable extends IcebergPyTable implements StagedTable {
  private final String catalog;
  IcebergPyStagedTable(Map facts, String catalog) {
    super(facts);
    this.catalog = catalog;
  }
  public void commitStagedChanges() { ask("staged.commit"); }
  public void abortStagedChanges() { ask("staged.abort"); }
  public org.apache.spark.sql.connector.metric.CustomTaskMetric[] reportDriverMetrics() {
    return new org.apache.spark.sql.connector.metric.CustomTaskMetric[0];
  }
  private void ask(String operation) {
    IcebergPyBridge.askMap(
        operation, IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "handle", handle}));
  }
}
