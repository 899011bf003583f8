/**
 * Errors of reading deletes, named like Python's errors: the driver finds them in task failures.
 */
public class IcebergPyReadFailure {
  private static final String PLACE = "iceberg_pyspark.errors.";

  public static RuntimeException invalid(String message) {
    return new IllegalStateException(PLACE + "InvalidMetadataError: " + message);
  }
  public static RuntimeException unreadable(String message, Exception cause) {
    return new IllegalStateException(PLACE + "StorageError: " + message, cause);
  }
  /** Return whether the exception was created here. */
  public static boolean isNamed(RuntimeException failure) {
    return String.valueOf(failure.getMessage()).startsWith(PLACE);
  }
}
