import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;

/**
 * A table as pipelines load it, which ask by an interface whether an AUTO CDC flow can MERGE into
 * it. The flow's MERGE names the table, and so loads one without the interface: Spark would plan
 * the changes of this one itself.
 */
class IcebergPyAutoCdcTarget extends IcebergPyTable implements SupportsRowLevelOperations {
  private static final String PIPELINES = "org.apache.spark.sql.pipelines.graph.DatasetManager";

  IcebergPyAutoCdcTarget(IcebergPyTableDefinition definition) { super(definition); }

  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    throw new UnsupportedOperationException(name());
  }

  /** Return whether pipelines load a table themselves, which only the stack of callers shows. */
  static boolean isAsked() {
    StackTraceElement[] callers = Thread.currentThread().getStackTrace();
    for (int i = 1; i < callers.length; i++) {
      String name = callers[i].getClassName();
      if (!name.contains("IcebergPy") && !name.endsWith("iceberg_pyspark"))
        return name.startsWith(PIPELINES);
    }
    return false;
  }
}
