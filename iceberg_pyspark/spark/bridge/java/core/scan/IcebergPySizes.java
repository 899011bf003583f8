import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.AttributeMap$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Tells Spark the size of a plan that Python made over an RDD: Spark treats an unknown size as too
 * large to broadcast.
 */
public class IcebergPySizes {
  /**
   * Estimate the size by the rows and the read columns, as Iceberg's own connector does, so that
   * the same tables are broadcast: the files may contain many other columns. Rows without columns
   * have a size too.
   */
  static long estimate(long rows, StructType columns) {
    return rows * (columns.length() == 0 ? 8L : columns.defaultSize());
  }

  /** Return the plan with its size as statistics, if it reads an RDD. */
  public Object withStatistics(Object plan, long count) {
    LogicalPlan top = (LogicalPlan) plan;
    if (top.children().size() != 1 || !(top.children().head() instanceof LogicalRDD)) return plan;
    LogicalRDD rows = (LogicalRDD) top.children().head();
    Object statistics = new org.apache.spark.sql.catalyst.plans.logical.Statistics(
        scala.math.BigInt.apply(estimate(count, top.schema())),
        scala.Option.apply(scala.math.BigInt.apply(count)), AttributeMap$.MODULE$.empty(), false);
    Object sizedRows = IcebergPyInternals.sizedRows(rows, statistics);
    if (sizedRows == rows) return plan;
    // not with withNewChildren: plans over the same RDD are equal, whatever their sizes
    List parts = new ArrayList(CollectionConverters.asJava(top.productIterator().toSeq()));
    parts.set(parts.indexOf(rows), sizedRows);
    return top.makeCopy(parts.toArray());
  }
}
