import java.nio.charset.StandardCharsets;

/**
 * A pickled `IcebergDataSource`, read as data: nothing of it is run. All that the object is stands
 * in one text, whose length is before it.
 */
public class IcebergPyPickle {
  private static final String MARK = "iceberg-py state ";
  private static final int SHORT_TEXT = 0x8c, TEXT = 'X';

  /** The first text that begins as states do; null if there is none. */
  public static String state(byte[] pickled) {
    String characters = new String(pickled, StandardCharsets.ISO_8859_1);
    for (int at = characters.indexOf(MARK); at >= 0; at = characters.indexOf(MARK, at + 1)) {
      int length = lengthBefore(pickled, at);
      if (length >= 0) return new String(pickled, at, length, StandardCharsets.UTF_8);
    }
    return null;
  }

  /** The length of the text that begins there; -1 if none does, or not all of it is there. */
  private static int lengthBefore(byte[] pickled, int at) {
    long length = -1;
    if (at >= 5 && pickled[at - 5] == TEXT) {
      length = 0;
      for (int i = 1; i <= 4; i++) length = length << 8 | pickled[at - i] & 0xff;
    }
    if (length >= 0 && at + length <= pickled.length) return (int) length;
    if (at < 2 || (pickled[at - 2] & 0xff) != SHORT_TEXT) return -1;
    length = pickled[at - 1] & 0xff;
    return at + length <= pickled.length ? (int) length : -1;
  }
}
