/** A SparkThrowable, because ALTER TABLE wraps other exceptions. */
class IcebergPyInvalidRequestException
    extends IllegalArgumentException implements org.apache.spark.SparkThrowable {
  IcebergPyInvalidRequestException(String message) { super(message); }
  public String getCondition() { return null; }
}
