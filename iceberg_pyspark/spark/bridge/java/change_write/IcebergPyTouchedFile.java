import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import org.roaringbitmap.longlong.Roaring64NavigableMap;

/** Positions of one data file. */
class IcebergPyTouchedFile {
  private final Roaring64NavigableMap positions = new Roaring64NavigableMap();
  private long count;

  void add(long position) {
    positions.addLong(position);
    count++;
  }
  /** Return whether a position was added twice. */
  boolean hasTwice() { return positions.getLongCardinality() < count; }

  /** Return the positions in the portable form of 64-bit bitmaps. */
  byte[] serialize() throws IOException {
    positions.runOptimize();
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    positions.serializePortable(new DataOutputStream(bytes));
    return bytes.toByteArray();
  }
}
