import org.apache.spark.SparkConf;

/**
 * The settings that the event log asks: it redacts the properties of a job that it takes for
 * settings, and catalogs set later are.
 */
class IcebergPyRedactedConf extends SparkConf {
  IcebergPyRedactedConf(SparkConf conf) {
    super(false);
    setAll(scala.Predef$.MODULE$.wrapRefArray(conf.getAll()));
  }
  public boolean contains(String key) {
    return key.startsWith("spark.sql.") || super.contains(key);
  }
}
