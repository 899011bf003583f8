import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Relations of `spark.read.format("iceberg-py")`: Spark's own Python data source. */
class IcebergPySource {
  static boolean isOurs(DataSourceV2ScanRelation relation) {
    return relation.scan()
               instanceof org.apache.spark.sql.execution.datasources.v2.python.PythonScan
        && isOurs((DataSourceV2Relation) (Object) relation.relation());
  }
  static boolean isOurs(DataSourceV2Relation relation) {
    if (IcebergPyBridge.python == null
        || !(relation.table()
                 instanceof org.apache.spark.sql.execution.datasources.v2.python.PythonTable))
      return false;
    return relation.table().name().equalsIgnoreCase("iceberg-py")
        && !"false".equalsIgnoreCase(relation.options().get("native"));
  }
  /**
   * The Python object that Spark made and pickled for the relation: it holds the pinned snapshot.
   * Null if there is none yet.
   */
  static Object pickled(DataSourceV2ScanRelation relation) {
    try {
      Object source = field(relation.relation().table(), "ds");
      Object made =
          source.getClass()
              .getMethod("getOrCreateDataSourceInPython",
                  new Class[] {String.class, CaseInsensitiveStringMap.class, scala.Option.class})
              .invoke(source,
                  new Object[] {relation.relation().table().name(), relation.relation().options(),
                      scala.Option.apply(relation.relation().table().schema())});
      return made.getClass().getMethod("dataSource", new Class[0]).invoke(made, new Object[0]);
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }
  private static Object field(Object owner, String name) throws ReflectiveOperationException {
    java.lang.reflect.Field f = owner.getClass().getDeclaredField(name);
    f.setAccessible(true);
    return f.get(owner);
  }
}
