import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;

/** A placeholder of a write to an Iceberg table, which `IcebergPyStrategy` replaces. */
class IcebergPyWrite implements Write, WriteBuilder, SupportsTruncate, SupportsOverwriteV2,
                                SupportsDynamicOverwrite {
  final IcebergPyTable table;
  IcebergPyWrite(IcebergPyTable table) { this.table = table; }
  public Write build() { return this; }
  public WriteBuilder truncate() { return this; }
  public boolean canOverwrite(
      org.apache.spark.sql.connector.expressions.filter.Predicate[] predicates) {
    return true;
  }
  public WriteBuilder overwrite(
      org.apache.spark.sql.connector.expressions.filter.Predicate[] predicates) {
    return this;
  }
  public WriteBuilder overwriteDynamicPartitions() { return this; }
  public String description() { return "iceberg-py " + table.name(); }
}
