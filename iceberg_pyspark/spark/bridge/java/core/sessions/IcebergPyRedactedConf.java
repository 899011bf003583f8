import org.apache.spark.SparkConf;

/**
 * The settings for the event log. The event log redacts only the properties of a job that it knows
 * as settings; this class makes it know the settings of catalogs that are set later.
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
