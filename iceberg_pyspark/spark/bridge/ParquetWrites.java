// Spark's own Parquet writer on a folder of its own; what is written, and how, is Python's to say.

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.internal.io.HadoopMapReduceCommitProtocol;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.KnownNullable;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FileFormatWriter$;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import scala.jdk.javaapi.CollectionConverters;

public class IcebergPyParquetWrites {
  /** A column that may hold nulls, whatever the plan knows of it. */
  public Object nullable(Object column) {
    return org.apache.spark.sql.classic.ExpressionUtils.column(new KnownNullable(org.apache.spark.sql.classic.ExpressionUtils.expression((org.apache.spark.sql.Column) column)));
  }

  /** Write the rows below a folder; `settings` are the session's for this write alone, `options` Hadoop's and the format's. */
  public void write(Object frame, String job, String folder, List partitionedBy, String settings, String options) throws java.io.IOException {
    org.apache.spark.sql.classic.Dataset rows = (org.apache.spark.sql.classic.Dataset) frame;
    QueryExecution execution = rows.queryExecution();
    org.apache.spark.sql.classic.SparkSession session = ((org.apache.spark.sql.classic.SparkSession) (Object) execution.sparkSession()).cloneSession();
    Iterator each = ((Map) IcebergPyBridge.JSON.readValue(settings, Map.class)).entrySet().iterator();
    while (each.hasNext()) { Map.Entry one = (Map.Entry) each.next(); session.sessionState().conf().setConfString((String) one.getKey(), (String) one.getValue()); }
    Map given = (Map) IcebergPyBridge.JSON.readValue(options, Map.class);
    scala.Function0 body = new IcebergPyParquetWrite(session, execution, job, folder, new HashSet(partitionedBy), given);
    SQLExecution$.MODULE$.withNewExecutionId(execution, scala.Option.apply("iceberg-py: Parquet files"), new IcebergPyWithSettings(session, body));
  }
}

/** A body run with a session's settings passed on to its tasks. */
class IcebergPyWithSettings extends scala.runtime.AbstractFunction0 {
  private final org.apache.spark.sql.classic.SparkSession session;
  private final scala.Function0 body;
  IcebergPyWithSettings(org.apache.spark.sql.classic.SparkSession session, scala.Function0 body) { this.session = session; this.body = body; }
  public Object apply() { return SQLExecution$.MODULE$.withSQLConfPropagated(session, body); }
}

class IcebergPyParquetWrite extends scala.runtime.AbstractFunction0 {
  private final org.apache.spark.sql.classic.SparkSession session;
  private final QueryExecution execution;
  private final String job;
  private final String folder;
  private final Set partitionedBy;
  private final Map options;
  IcebergPyParquetWrite(org.apache.spark.sql.classic.SparkSession session, QueryExecution execution, String job, String folder, Set partitionedBy, Map options) {
    this.session = session; this.execution = execution; this.job = job; this.folder = folder; this.partitionedBy = partitionedBy; this.options = options;
  }

  public Object apply() {
    SparkPlan plan = (SparkPlan) execution.executedPlan();
    List output = new ArrayList(CollectionConverters.asJava(plan.output()));
    List partitions = new ArrayList();
    for (int i = 0; i < output.size(); i++) if (partitionedBy.contains(((Attribute) output.get(i)).name())) partitions.add(output.get(i));
    scala.collection.immutable.Map given = scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(new HashMap(options)));
    scala.collection.immutable.Map none = scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(new HashMap()));
    Configuration hadoop = session.sessionState().newHadoopConfWithOptions(given);
    // Spark's committer, whichever the session names: one that does without a rename may show files of failed tasks
    HadoopMapReduceCommitProtocol committer = new HadoopMapReduceCommitProtocol(job, folder, false);
    org.apache.spark.sql.execution.datasources.FileFormatWriter$OutputSpec target = new org.apache.spark.sql.execution.datasources.FileFormatWriter$OutputSpec(folder, none, IcebergPyBridge.seq(output));
    return FileFormatWriter$.MODULE$.write(session, plan, new ParquetFileFormat(), committer, target, hadoop, IcebergPyBridge.seq(partitions), scala.Option.empty(), IcebergPyBridge.seq(new ArrayList()), given, 0, FileFormatWriter$.MODULE$.write$default$12());
  }
}
