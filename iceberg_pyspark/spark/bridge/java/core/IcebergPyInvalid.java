/** A SparkThrowable, because ALTER TABLE wraps other exceptions. */
class IcebergPyInvalid extends IllegalArgumentException implements org.apache.spark.SparkThrowable {
  IcebergPyInvalid(String message) { super(message); }
  public String getCondition() { return null; }
}
