import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.KnownNullable;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;

/** Spark's own Parquet writer, for rows that Python commits. */
public class IcebergPyParquetWrites {
  /** A column that may hold nulls, whatever the plan knows of it. */
  public Object nullable(Object column) {
    return org.apache.spark.sql.classic.ExpressionUtils.column(
        new KnownNullable(org.apache.spark.sql.classic.ExpressionUtils.expression(
            (org.apache.spark.sql.Column) column)));
  }

  /**
   * Write the rows below a folder; `settings` are the session's for this write alone, `options`
   * Hadoop's and the format's.
   */
  public void write(Object frame, String job, String folder, String partitionedBy, String settings,
      String options) throws java.io.IOException {
    org.apache.spark.sql.classic.Dataset rows = (org.apache.spark.sql.classic.Dataset) frame;
    QueryExecution execution = rows.queryExecution();
    org.apache.spark.sql.classic.SparkSession session =
        ((org.apache.spark.sql.classic.SparkSession) (Object) execution.sparkSession())
            .cloneSession();
    Iterator each =
        ((Map) IcebergPyBridge.JSON.readValue(settings, Map.class)).entrySet().iterator();
    while (each.hasNext()) {
      Map.Entry one = (Map.Entry) each.next();
      session.sessionState().conf().setConfString((String) one.getKey(), (String) one.getValue());
    }
    Map given = (Map) IcebergPyBridge.JSON.readValue(options, Map.class);
    scala.Function0 body = new IcebergPyParquetWrite(session, execution, job, folder,
        new HashSet((List) IcebergPyBridge.JSON.readValue(partitionedBy, List.class)), given);
    SQLExecution$.MODULE$.withNewExecutionId(execution,
        scala.Option.apply("iceberg-py: Parquet files"), new IcebergPyWithSettings(session, body));
  }
}
