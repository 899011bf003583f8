/** What executors hold of a file or blob of deletes. */
public class IcebergPyDecoded {
  /** About what it takes in memory. */
  public long bytes = 256;
}
