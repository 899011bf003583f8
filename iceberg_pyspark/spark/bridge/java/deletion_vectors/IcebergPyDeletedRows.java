import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.roaringbitmap.RoaringBitmap;

/** The deleted positions of a data file: one bitmap of 32-bit positions for each higher 32 bits. */
public class IcebergPyDeletedRows extends IcebergPyCachedDeletes {
  /** The bitmap of positions below 2^32, which are nearly always all. */
  RoaringBitmap first = null;
  final Map others = new HashMap();

  public boolean contains(long position) {
    int key = (int) (position >>> 32);
    RoaringBitmap of = key == 0 ? first : (RoaringBitmap) others.get(Integer.valueOf(key));
    return of != null && of.contains((int) position);
  }

  void put(int key, RoaringBitmap bitmap) {
    if (key == 0)
      first = bitmap;
    else
      others.put(Integer.valueOf(key), bitmap);
  }
  /** Return the mutable bitmap of a key. */
  public RoaringBitmap of(int key) {
    RoaringBitmap ofKey = key == 0 ? first : (RoaringBitmap) others.get(Integer.valueOf(key));
    if (ofKey == null) put(key, ofKey = new RoaringBitmap());
    return ofKey;
  }
  public void addAll(IcebergPyDeletedRows rows) {
    if (rows.first != null) of(0).or(rows.first);
    Iterator entries = rows.others.entrySet().iterator();
    while (entries.hasNext()) {
      Map.Entry entry = (Map.Entry) entries.next();
      of(((Integer) entry.getKey()).intValue()).or((RoaringBitmap) entry.getValue());
    }
  }

  /** Update `bytes` by the size of the bitmaps. */
  public void measure() {
    bytes = 256 + (first == null ? 0 : sizeOf(first));
    Iterator bitmaps = others.values().iterator();
    while (bitmaps.hasNext()) bytes += sizeOf((RoaringBitmap) bitmaps.next());
  }
  private static long sizeOf(RoaringBitmap bitmap) {
    if (bitmap.isEmpty()) return 256;
    long containers = (bitmap.last() >>> 16) - (bitmap.first() >>> 16) + 1;
    return 256 + bitmap.getLongSizeInBytes()
        + 64 * Math.min(containers, bitmap.getLongCardinality());
  }
}
