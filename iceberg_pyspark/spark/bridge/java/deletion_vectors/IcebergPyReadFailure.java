/** Failures of reading deletes, as Python's own are shown: the driver finds those in tasks'. */
public class IcebergPyReadFailure {
  private static final String PLACE = "iceberg_pyspark.errors.";

  public static RuntimeException invalid(String message) {
    return new IllegalStateException(PLACE + "InvalidMetadataError: " + message);
  }
  public static RuntimeException unread(String message, Exception cause) {
    return new IllegalStateException(PLACE + "StorageError: " + message, cause);
  }
  /** Whether it was made here. */
  public static boolean isNamed(RuntimeException failure) {
    return String.valueOf(failure.getMessage()).startsWith(PLACE);
  }
}
