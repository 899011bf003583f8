import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.read.Scan;

/** Files of an Iceberg table that Spark's own reader reads, as Python planned them. */
public interface IcebergPyFiles extends Table {
  /** Return the paths of the files. */
  String[] paths();
  /** Return the number of rows in the files, including deleted rows. */
  long rows();
  /** Return whether the files are grouped by equal partition values. */
  boolean isGrouped();
  /**
   * Return name, direction and null order of each column by which the rows of every task are
   * sorted, if the files are grouped; empty if no order is certain.
   */
  java.util.List sortOrder(IcebergPySplits splits);
  /** Return whether a column is read from the files, instead of being constant in each file. */
  boolean isRead(String column);
  /** Return whether the reader accepts filters on fields of structs. */
  boolean readsNestedFilters();
  /**
   * Return the same files with structs of fields, by column, in place of variants; null if the
   * reader cannot read fields alone.
   */
  IcebergPyFiles withFields(java.util.Map structs);
  /**
   * Return the scan of the files. By `filters`, the reader may skip rows. `scanDefinition`
   * is the definition by which Python planned, to which runtime filters may be added. `statistics`
   * maps column references to statistics.
   */
  Scan scan(org.apache.spark.sql.sources.Filter[] filters, java.util.Map scanDefinition,
      IcebergPySplits splits, java.util.Map statistics);
}
