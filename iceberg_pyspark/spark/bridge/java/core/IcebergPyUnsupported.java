/** As Spark's own throwable, so that ALTER TABLE does not wrap it. */
class IcebergPyUnsupported
    extends UnsupportedOperationException implements org.apache.spark.SparkThrowable {
  IcebergPyUnsupported(String message) { super(message); }
  public String getCondition() { return null; }
}
