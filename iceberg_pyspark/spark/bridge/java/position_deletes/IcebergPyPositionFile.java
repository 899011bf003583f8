import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;

/** What a position delete file says of the data files that it names, or of one of them. */
class IcebergPyPositionFile extends IcebergPyDecoded {
  /** Whether it is to be read for one data file at a time: then nothing is known of any. */
  boolean isTooLarge = false;
  private Map rows = new HashMap();

  /** The deleted rows of a data file, null where it is not named. */
  IcebergPyDeletedRows rowsOf(String path) { return (IcebergPyDeletedRows) rows.get(path); }
  /** The same, to be added to. */
  IcebergPyDeletedRows named(String path) {
    IcebergPyDeletedRows deleted = (IcebergPyDeletedRows) rows.get(path);
    if (deleted == null) rows.put(path, deleted = new IcebergPyDeletedRows());
    return deleted;
  }

  /** Find out what it takes; of more than that of several data files nothing is kept. */
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
