import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.internal.io.FileCommitProtocol;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructType;

/** Writes Parquet files with Spark's own writer; Python commits them. */
public class IcebergPyParquetWrites {
  /**
   * Return a frame's columns as they are written; `json` has `WrittenColumn`s of
   * call_arguments.py.
   */
  public Object columns(Object session, Object frame, String json) throws java.io.IOException {
    List all = (List) IcebergPyBridge.JSON.readValue(json, List.class), out = new ArrayList();
    LogicalPlan plan = IcebergPyFrames.plan(frame);
    Map columns = IcebergPyScanParts.byName(plan);
    for (int i = 0; i < all.size(); i++) {
      Map description = (Map) all.get(i);
      Expression column = (Expression) columns.get(description.get("source"));
      if (description.get("type") != null)
        column = IcebergPyFrames.expression(session,
            ((org.apache.spark.sql.Column) IcebergPyFrames.column(column))
                .cast(DataType.fromJson((String) description.get("type"))));
      out.add(IcebergPyFrames.alias(
          column, (String) description.get("name"), scala.Option.apply(Metadata.empty())));
    }
    return IcebergPyFrames.frame(session, new Project(IcebergPyBridge.seq(out), plan));
  }

  /**
   * Write the rows into files in a folder. `columns` has the types and nullability of the files'
   * columns, as Spark's JSON; partition columns follow them. `settings` are session settings for
   * this write only; `options` are for Hadoop and the format. Without another `commit` protocol,
   * the files are moved to the folder after all are written; without another `format`, it is
   * Spark's Parquet with field ids.
   */
  public void write(Object frame, String columns, String job, String folder,
      String partitionColumns, String settings, String options, Object commit, Object format)
      throws java.io.IOException {
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
    Map hadoopOptions = (Map) IcebergPyBridge.JSON.readValue(options, Map.class);
    IcebergPyLocalFiles.addTo(hadoopOptions, session, folder);
    scala.Function0 body = new IcebergPyParquetWrite(session, execution,
        (StructType) DataType.fromJson(columns), job, folder,
        new HashSet((List) IcebergPyBridge.JSON.readValue(partitionColumns, List.class)),
        hadoopOptions, (FileCommitProtocol) commit,
        format == null ? new IcebergPyParquetFormat() : (ParquetFileFormat) format);
    SQLExecution$.MODULE$.withNewExecutionId(execution,
        scala.Option.apply("iceberg-py: Parquet files"), new IcebergPySettingsScope(session, body));
  }
}
