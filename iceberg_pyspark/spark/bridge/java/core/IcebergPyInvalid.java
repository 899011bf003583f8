/** As Spark's own throwables, so that ALTER TABLE does not wrap them. */
class IcebergPyInvalid extends IllegalArgumentException implements org.apache.spark.SparkThrowable {
  IcebergPyInvalid(String message) { super(message); }
  public String getCondition() { return null; }
}
