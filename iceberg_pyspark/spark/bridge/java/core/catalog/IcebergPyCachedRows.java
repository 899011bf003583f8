import java.util.List;
import org.apache.spark.sql.classic.SparkSession;

/** Rows that Spark has cached of a table, which become stale when the table changes. */
class IcebergPyCachedRows {
  /** Refresh or drop the rows; `name` is the full name of a changed table or of its branch. */
  static void recache(SparkSession session, List name) {
    int table = name.size() - 1;
    // reads of a branch through an option are cached under the table's name
    if (((String) name.get(table)).startsWith("branch_"))
      IcebergPyInternals.recacheTable(session, IcebergPyBridge.seq(name.subList(0, table)));
    IcebergPyInternals.recacheTable(session, IcebergPyBridge.seq(name));
  }
}
