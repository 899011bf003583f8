import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.AttributeMap$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * How large the rows of a plan are that Python sized over an RDD: Spark takes what it does not know
 * for too large to broadcast.
 */
public class IcebergPySizes {
  /**
   * By rows and what of them is read, as Iceberg's own connector says it, so that the same tables
   * are broadcast: files have columns that no one asked for. Rows of no column have a size too.
   */
  static long estimate(long rows, StructType columns) {
    return rows * (columns.length() == 0 ? 8L : columns.defaultSize());
  }

  /** The plan with its size as statistics, if it stands on an RDD. */
  public Object withStatistics(Object plan, long count) {
    LogicalPlan top = (LogicalPlan) plan;
    if (top.children().size() != 1 || !(top.children().head() instanceof LogicalRDD)) return plan;
    LogicalRDD rows = (LogicalRDD) top.children().head();
    Object statistics = new org.apache.spark.sql.catalyst.plans.logical.Statistics(
        scala.math.BigInt.apply(estimate(count, top.schema())), scala.Option.empty(),
        AttributeMap$.MODULE$.empty(), false);
    Object sizedRows = IcebergPyInternals.sizedRows(rows, statistics);
    if (sizedRows == rows) return plan;
    // not by withNewChildren: an RDD equals itself, whatever its size
    List parts = new ArrayList(CollectionConverters.asJava(top.productIterator().toSeq()));
    parts.set(parts.indexOf(rows), sizedRows);
    return top.makeCopy(parts.toArray());
  }
}
