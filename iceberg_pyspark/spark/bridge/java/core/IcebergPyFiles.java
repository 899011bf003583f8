import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.read.Scan;

/** Files of a table of ours that Spark's own reader reads, as Python chose them. */
public interface IcebergPyFiles extends Table {
  /** Where the files are. */
  String[] paths();
  /** How many rows the files have, deleted ones too. */
  long rows();
  /** Whether the files come in groups of equal partition values. */
  boolean isGrouped();
  /**
   * Name, direction and place of nulls of each column that the rows of every task are sorted by,
   * where they come in groups; of none where that is not certain.
   */
  java.util.List sortedBy(IcebergPySplits splits);
  /** Whether a column is read from the files, and not a fact about each of them. */
  boolean isRead(String column);
  /** Whether the reader takes filters on fields of structs. */
  boolean readsNestedFilters();
  /**
   * The scan of them; `filters` are what the reader may skip rows by, and `question` what Python
   * was asked, to which filters that are known while the query runs may be added; `statistics` are
   * of some columns by their references.
   */
  Scan scan(org.apache.spark.sql.sources.Filter[] filters, java.util.Map question,
      IcebergPySplits splits, java.util.Map statistics);
}
