import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions;

/** Distributes rows for writing: into partitions of about one size, by hash or by range. */
public class IcebergPyLayout {
  /**
   * Return the rows of a DataFrame in partitions of about `bytes`: by range if the columns have an
   * order, else by hash. `columns` is a JSON list of columns.
   */
  public Object rebalance(Object server, Object session, Object frame, String columns, long bytes) {
    org.apache.spark.sql.classic.SparkSession spark =
        (org.apache.spark.sql.classic.SparkSession) session;
    List read = (List) IcebergPyObjects.read(server, columns), by = new ArrayList();
    for (int i = 0; i < read.size(); i++)
      by.add(spark.expression((org.apache.spark.sql.Column) read.get(i)));
    return IcebergPyFrames.frame(session,
        new RebalancePartitions(IcebergPyBridge.seq(by), IcebergPyFrames.plan(frame),
            scala.Option.empty(), scala.Option.apply(Long.valueOf(bytes))));
  }

  /** Return the hash of a column's values: see `IcebergPyMurmur3`. */
  public Object murmur3(Object column, String kind) {
    Expression value = org.apache.spark.sql.classic.ExpressionUtils.expression(
        (org.apache.spark.sql.Column) column);
    return org.apache.spark.sql.classic.ExpressionUtils.column(IcebergPyMurmur3.of(value, kind));
  }
}
