import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;

/** The deletes in a position delete file, for all data files that it names or for one of them. */
class IcebergPyPositionFile extends IcebergPyCachedDeletes {
  /** Whether the file must be read separately for each data file; then `rows` is empty. */
  boolean isTooLarge = false;
  private Map rows = new HashMap();

  /** Return the deleted rows of a data file, or null if the delete file does not name it. */
  IcebergPyDeletedRows rowsOf(String path) { return (IcebergPyDeletedRows) rows.get(path); }
  /** Return the deleted rows of a data file, to which rows can be added. */
  IcebergPyDeletedRows rowsToExtend(String path) {
    IcebergPyDeletedRows deleted = (IcebergPyDeletedRows) rows.get(path);
    if (deleted == null) rows.put(path, deleted = new IcebergPyDeletedRows());
    return deleted;
  }

  /** Measure the memory; above `most`, drop the deletes if they are for several data files. */
  void measure(long most) {
    bytes = 256;
    Iterator entries = rows.entrySet().iterator();
    while (entries.hasNext()) {
      Map.Entry entry = (Map.Entry) entries.next();
      IcebergPyDeletedRows of = (IcebergPyDeletedRows) entry.getValue();
      of.measure();
      bytes += of.bytes + 128 + 2 * ((String) entry.getKey()).length();
    }
    isTooLarge = bytes > most && rows.size() > 1;
    if (!isTooLarge) return;
    rows = new HashMap();
    bytes = 256;
  }
}
