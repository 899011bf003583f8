/** A SparkThrowable, because ALTER TABLE wraps other exceptions. */
class IcebergPyUnsupported
    extends UnsupportedOperationException implements org.apache.spark.SparkThrowable {
  IcebergPyUnsupported(String message) { super(message); }
  public String getCondition() { return null; }
}
