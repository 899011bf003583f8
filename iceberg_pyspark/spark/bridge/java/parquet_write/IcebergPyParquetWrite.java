import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.internal.io.FileCommitProtocol;
import org.apache.spark.internal.io.HadoopMapReduceCommitProtocol;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/** A job of Spark's Parquet writer. */
class IcebergPyParquetWrite extends scala.runtime.AbstractFunction0 {
  private final org.apache.spark.sql.classic.SparkSession session;
  private final QueryExecution execution;
  private final StructType columns;
  private final String job;
  private final String folder;
  private final Set partitionColumns;
  private final Map options;
  private final FileCommitProtocol commit;
  private final ParquetFileFormat format;
  IcebergPyParquetWrite(org.apache.spark.sql.classic.SparkSession session, QueryExecution execution,
      StructType columns, String job, String folder, Set partitionColumns, Map options,
      FileCommitProtocol commit, ParquetFileFormat format) {
    this.session = session;
    this.execution = execution;
    this.columns = columns;
    this.job = job;
    this.folder = folder;
    this.partitionColumns = partitionColumns;
    this.options = options;
    this.commit = commit;
    this.format = format;
  }

  public Object apply() {
    SparkPlan plan = (SparkPlan) execution.executedPlan();
    List output = new ArrayList(CollectionConverters.asJava(plan.output()));
    List partitions = new ArrayList();
    for (int i = 0; i < output.size(); i++) {
      // the files have the table's types, whatever Spark knows about nulls
      if (i < columns.length()) {
        StructField column = columns.apply(i);
        output.set(i,
            ((Attribute) output.get(i))
                .withDataType(column.dataType())
                .withNullability(column.nullable()));
      }
      if (partitionColumns.contains(((Attribute) output.get(i)).name()))
        partitions.add(output.get(i));
    }
    scala.collection.immutable.Map optionMap = scala.collection.immutable.Map$.MODULE$.from(
        CollectionConverters.asScala(new HashMap(options)));
    scala.collection.immutable.Map none =
        scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(new HashMap()));
    Configuration hadoop = session.sessionState().newHadoopConfWithOptions(optionMap);
    // always Spark's own committer, whatever the session configures: a committer that does not
    // rename may leave visible files of failed tasks
    FileCommitProtocol committer = commit != null
        ? commit
        : (FileCommitProtocol) new HadoopMapReduceCommitProtocol(job, folder, false);
    org.apache.spark.sql.execution.datasources.FileFormatWriter$OutputSpec target =
        new org.apache.spark.sql.execution.datasources.FileFormatWriter$OutputSpec(
            folder, none, IcebergPyBridge.seq(output));
    return IcebergPyFileInternals.writeFiles(new Object[] {session, plan, format, committer, target,
        hadoop, IcebergPyBridge.seq(partitions), scala.Option.empty(),
        IcebergPyBridge.seq(new ArrayList()), optionMap, Integer.valueOf(0)});
  }
}
