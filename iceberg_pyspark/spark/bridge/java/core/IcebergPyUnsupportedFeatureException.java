/** A SparkThrowable, because ALTER TABLE wraps other exceptions. */
class IcebergPyUnsupportedFeatureException
    extends UnsupportedOperationException implements org.apache.spark.SparkThrowable {
  IcebergPyUnsupportedFeatureException(String message) { super(message); }
  public String getCondition() { return null; }
}
