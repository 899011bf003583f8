/** The decoded deletes of a file or blob, as executors cache them. */
public class IcebergPyCachedDeletes {
  /** The approximate size in memory. */
  public long bytes = 256;
}
