import java.io.IOException;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The positions of changed rows by data file, and the number of rows of each operation. A row has
 * its operation, file and position in three columns from `first` on; the operations are those of
 * table/row_level/change_task.py.
 */
class IcebergPyTouchedRows {
  static final int COLUMNS = 3;
  private static final int DELETE = 0, UPDATE = 1, KEEP_UNCHANGED = 4;
  private final int first;
  private final long[] counts = new long[KEEP_UNCHANGED + 1];
  private final Map removed = new HashMap(), unchanged = new HashMap();
  private UTF8String lastRemoved, lastUnchanged;
  private IcebergPyTouchedFile removedFile, unchangedFile;
  IcebergPyTouchedRows(int first) { this.first = first; }

  /** Count a row and remember its position; return whether it is written. */
  boolean add(InternalRow row) {
    int operation = row.getInt(first);
    counts[operation]++;
    if (!row.isNullAt(first + 2)) {
      UTF8String file = row.getUTF8String(first + 1);
      long position = row.getLong(first + 2);
      if (operation == DELETE || operation == UPDATE) {
        if (!file.equals(lastRemoved)) {
          lastRemoved = file.copy();
          removedFile = of(removed, lastRemoved);
        }
        removedFile.add(position);
      } else {
        if (!file.equals(lastUnchanged)) {
          lastUnchanged = file.copy();
          unchangedFile = of(unchanged, lastUnchanged);
        }
        unchangedFile.add(position);
      }
    }
    return operation != DELETE && operation != KEEP_UNCHANGED;
  }
  private static IcebergPyTouchedFile of(Map files, UTF8String file) {
    IcebergPyTouchedFile touched = (IcebergPyTouchedFile) files.get(file);
    if (touched == null) files.put(file, touched = new IcebergPyTouchedFile());
    return touched;
  }

  /** Return all as JSON, a `TouchedPositions` of bridge/spark_writes.py. */
  String describe() throws IOException {
    Map all = new HashMap();
    all.put("counts", counts);
    all.put("removed", bitmaps(removed, all));
    all.put("unchanged", bitmaps(unchanged, all));
    return new com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString(all);
  }
  private static Map bitmaps(Map files, Map all) throws IOException {
    Map out = new HashMap();
    Iterator each = files.entrySet().iterator();
    while (each.hasNext()) {
      Map.Entry one = (Map.Entry) each.next();
      IcebergPyTouchedFile touched = (IcebergPyTouchedFile) one.getValue();
      if (touched.hasTwice()) all.put("twice", one.getKey().toString());
      out.put(one.getKey().toString(), touched.serialize());
    }
    return out;
  }
}
