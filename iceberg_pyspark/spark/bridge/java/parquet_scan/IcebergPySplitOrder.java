import java.util.Comparator;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/** The order in which Spark packs splits: the largest first. */
class IcebergPySplitOrder implements Comparator {
  public int compare(Object a, Object b) {
    return Long.compare(((PartitionedFile) b).length(), ((PartitionedFile) a).length());
  }
}
