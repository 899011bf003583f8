import java.nio.charset.StandardCharsets;

/**
 * Reads a pickled `IcebergDataSource` as data and runs none of it. The state of the object is one
 * string, whose length precedes it.
 */
public class IcebergPyPickle {
  private static final String MARK = "iceberg-py state ";
  private static final int SHORT_TEXT = 0x8c, TEXT = 'X';

  /** Return the first string that begins like a state, or null if there is none. */
  public static String state(byte[] pickled) {
    String characters = new String(pickled, StandardCharsets.ISO_8859_1);
    for (int at = characters.indexOf(MARK); at >= 0; at = characters.indexOf(MARK, at + 1)) {
      int length = lengthBefore(pickled, at);
      if (length >= 0) return new String(pickled, at, length, StandardCharsets.UTF_8);
    }
    return null;
  }

  /** Return the length of the string that begins at `at`; -1 if there is none or it is cut off. */
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
