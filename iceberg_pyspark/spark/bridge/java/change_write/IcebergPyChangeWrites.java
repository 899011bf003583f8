import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.util.CollectionAccumulator;

/** Jobs of row-level changes whose rows do not go through Python. */
public class IcebergPyChangeWrites {
  /** Return the format of one write of changed rows, see `IcebergPyChangeFormat`. */
  public Object format(Object session) {
    org.apache.spark.sql.classic.SparkSession spark = sendTo(session);
    CollectionAccumulator touched = new CollectionAccumulator();
    spark.sparkContext().register(touched);
    return new IcebergPyChangeFormat(touched);
  }
  /** Return what the rows of a format's files touch, one text for each file. */
  public List touched(Object format) { return ((IcebergPyChangeFormat) format).take(); }

  /** Return what the rows of a frame touch, which are only removed, one text for each task. */
  public List remove(Object session, Object frame) {
    org.apache.spark.sql.classic.SparkSession spark = sendTo(session);
    QueryExecution execution = ((org.apache.spark.sql.classic.Dataset) frame).queryExecution();
    Object[] touched = (Object[]) SQLExecution$.MODULE$.withNewExecutionId(execution,
        scala.Option.apply("iceberg-py: positions of rows"),
        new IcebergPyTouchedJob(spark.sparkContext(), execution));
    return new ArrayList(Arrays.asList(touched));
  }

  private static org.apache.spark.sql.classic.SparkSession sendTo(Object session) {
    org.apache.spark.sql.classic.SparkSession spark =
        (org.apache.spark.sql.classic.SparkSession) session;
    IcebergPyExecutorJars.send(spark, IcebergPyChangeWriters.class);
    return spark;
  }
}
