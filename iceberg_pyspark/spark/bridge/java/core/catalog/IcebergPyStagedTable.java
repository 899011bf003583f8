import org.apache.spark.sql.connector.catalog.StagedTable;

/** A table that exists only as a handle in Python until its rows are written and committed. */
class IcebergPyStagedTable extends IcebergPyTable implements StagedTable {
  private final String catalog;
  IcebergPyStagedTable(IcebergPyTableDefinition definition, String catalog) {
    super(definition);
    this.catalog = catalog;
  }
  public void commitStagedChanges() { IcebergPyRequests.stagedCommit(catalog, handle); }
  public void abortStagedChanges() { IcebergPyRequests.stagedAbort(catalog, handle); }
  public org.apache.spark.sql.connector.metric.CustomTaskMetric[] reportDriverMetrics() {
    return new org.apache.spark.sql.connector.metric.CustomTaskMetric[0];
  }
}
