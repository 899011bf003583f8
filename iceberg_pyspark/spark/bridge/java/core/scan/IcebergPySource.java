import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/** The relations of `spark.read.format("iceberg-py")`, Spark's own Python data source. */
class IcebergPySource {
  static boolean isOurs(DataSourceV2ScanRelation relation) {
    return IcebergPyInternals.isPythonScan(relation.scan())
        && isOurs((DataSourceV2Relation) (Object) relation.relation());
  }
  static boolean isOurs(DataSourceV2Relation relation) {
    if (IcebergPyBridge.callback == null || !IcebergPyInternals.isPythonTable(relation.table()))
      return false;
    return relation.table().name().equalsIgnoreCase("iceberg-py")
        && relation.options().get("nanos-as") == null
        && !"false".equalsIgnoreCase(relation.options().get("native"));
  }
  /**
   * Return the state of the relation's Python object, which contains the pinned snapshot; null if
   * Spark has not created the object yet.
   */
  static String state(DataSourceV2ScanRelation scan) {
    DataSourceV2Relation relation = (DataSourceV2Relation) (Object) scan.relation();
    byte[] pickled = (byte[]) IcebergPyInternals.pickledSource(
        relation.table(), relation.options(), relation.table().name(), relation.table().schema());
    return pickled == null ? null : IcebergPyPickle.state(pickled);
  }
}
