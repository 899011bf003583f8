/** The decoded deletes of a file or blob, as executors cache them. */
public class IcebergPyDecoded {
  /** The approximate size in memory. */
  public long bytes = 256;
}
