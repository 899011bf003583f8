import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.spark.util.SerializableConfiguration;

/** The deleted rows of one data file, from all its position delete files. */
class IcebergPyPositionsOfFile implements Callable {
  /** A row takes two bytes; the rest is for deletes that other data files need at the same time. */
  private static final long MAX_RECORDS = IcebergPyDeleteCache.MAX_BYTES / 8 * 3;
  private final Map places;
  private final String path;
  private final int begin;
  private final int end;
  /** Whether delete files are cached as a whole, for all data files that they name. */
  private final boolean whole;
  IcebergPyPositionsOfFile(Map places, int ordinal) {
    this.places = places;
    path = ((String[]) places.get("paths"))[ordinal];
    long[] ends = (long[]) places.get("ends");
    begin = ordinal == 0 ? 0 : (int) ends[ordinal - 1];
    end = (int) ends[ordinal];
    long records = 0;
    for (int i = begin; i < end; i++) records += ((long[]) places.get("records"))[number(i)];
    whole = records <= MAX_RECORDS;
  }
  private int number(int i) { return (int) ((long[]) places.get("files"))[i]; }

  IcebergPyDeletedRows find() {
    List keys = new ArrayList(Arrays.asList(new Object[] {path}));
    boolean lasting = true;
    for (int i = begin; i < end; i++) {
      lasting &= ((boolean[]) places.get("lasting"))[number(i)];
      keys.add(key(number(i)));
    }
    if (whole || !lasting) return (IcebergPyDeletedRows) call();
    return (IcebergPyDeletedRows) IcebergPyDeleteCache.get(keys, this);
  }
  /** Identifies the file by its store too, because another store may have a file of this name. */
  private List key(int number) {
    return Arrays.asList(
        new Object[] {places.get("store"), ((String[]) places.get("locations"))[number],
            Long.valueOf(((long[]) places.get("sizes"))[number]),
            Long.valueOf(((long[]) places.get("records"))[number])});
  }

  public Object call() {
    IcebergPyDeletedRows one = null, all = null;
    for (int i = begin; i < end; i++) {
      IcebergPyDeletedRows rows = rowsIn(number(i));
      if (rows != null && one != null) {
        // the cached rows of a file are shared and must not change
        if (all == null) (all = new IcebergPyDeletedRows()).addAll(one);
        all.addAll(rows);
      }
      if (one == null) one = rows;
    }
    if (all != null) all.measure();
    return all != null ? all : one != null ? one : new IcebergPyDeletedRows();
  }
  private IcebergPyDeletedRows rowsIn(int number) {
    IcebergPyPositionReader ofPath = read(number, path);
    if (!whole || !((boolean[]) places.get("lasting"))[number])
      return ((IcebergPyPositionFile) ofPath.call()).rowsOf(path);
    IcebergPyPositionFile file =
        (IcebergPyPositionFile) IcebergPyDeleteCache.get(key(number), read(number, null));
    if (!file.isTooLarge) return file.rowsOf(path);
    Object key = Arrays.asList(new Object[] {key(number), path});
    return ((IcebergPyPositionFile) IcebergPyDeleteCache.get(key, ofPath)).rowsOf(path);
  }
  private IcebergPyPositionReader read(int number, String only) {
    return new IcebergPyPositionReader(((SerializableConfiguration) places.get("conf")).value(),
        (String) places.get("table"), ((String[]) places.get("locations"))[number], only,
        ((Boolean) places.get("verify")).booleanValue());
  }
}
