import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;

/**
 * The location of a partition's file below the table's data folder, as in `formats/locations.py`.
 * The displayed values decide nothing: the rows of a file determine its partition.
 */
class IcebergPyDirectNames implements Serializable {
  /** For each partition field, its name in folders, and how its values are displayed. */
  private final String[] fields;
  private final String[] kinds;
  private final boolean hashed;
  private final boolean hasParts;
  private final String context;
  IcebergPyDirectNames(
      String[] fields, String[] kinds, boolean hashed, boolean hasParts, String context) {
    this.fields = fields;
    this.kinds = kinds;
    this.hashed = hashed;
    this.hasParts = hasParts;
    this.context = context;
  }

  String place(String parts, String name) {
    String plain = hasParts && fields.length > 0 ? folders(parts) + "/" + name : name;
    if (!hashed) return plain;
    byte[] bytes = plain.getBytes(StandardCharsets.UTF_8);
    int hash = Murmur3_x86_32.hashUnsafeBytes2(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, 0);
    // twenty binary digits
    String bits = Integer.toBinaryString((hash & 0xFFFFF) | 0x100000).substring(1);
    String start = bits.substring(0, 4) + "/" + bits.substring(4, 8) + "/" + bits.substring(8, 12)
        + "/" + bits.substring(12);
    if (context != null) return start + "/" + context + "/" + plain;
    return start + (hasParts ? "/" : "-") + plain;
  }

  /** Convert Spark's folders, such as `p0=5/p1=x6162`, to the folders that users know. */
  private String folders(String parts) {
    String[] folders = parts.isEmpty() ? new String[0] : parts.split("/");
    StringBuilder out = new StringBuilder();
    int next = 0;
    for (int i = 0; i < fields.length; i++) {
      String value = null;
      if (!kinds[i].equals("void"))
        value = ExternalCatalogUtils.unescapePathName(
            folders[next].substring(folders[next++].indexOf('=') + 1));
      boolean isNull = value == null || value.equals(ExternalCatalogUtils.DEFAULT_PARTITION_NAME());
      if (i > 0) out.append('/');
      out.append(fields[i]).append('=').append(
          isNull ? "null" : encode(displayValue(value, kinds[i])));
    }
    return out.toString();
  }
  private static String encode(String text) {
    try {
      return java.net.URLEncoder.encode(text, "UTF-8");
    } catch (java.io.UnsupportedEncodingException e) {
      throw new IllegalStateException(e);
    }
  }

  private static String displayValue(String value, String kind) {
    if (kind.equals("year")) return pad(1970 + Long.parseLong(value), 4);
    if (kind.equals("month")) {
      long months = Long.parseLong(value);
      return pad(1970 + Math.floorDiv(months, 12L), 4) + "-"
          + pad(Math.floorMod(months, 12L) + 1, 2);
    }
    if (kind.equals("day")) return LocalDate.ofEpochDay(Long.parseLong(value)).toString();
    if (kind.equals("hour")) {
      long hours = Long.parseLong(value);
      return LocalDate.ofEpochDay(Math.floorDiv(hours, 24L)) + "-"
          + pad(Math.floorMod(hours, 24L), 2);
    }
    if (kind.equals("time")) return value.replace(' ', 'T');
    if (kind.equals("utc")) return time(Long.parseLong(value)) + "+00:00";
    if (kind.equals("text") || kind.equals("bytes")) {
      // a long value has only its digest
      if (value.charAt(0) != 'x') return value;
      byte[] bytes = unhex(value.substring(1));
      return kind.equals("text") ? new String(bytes, StandardCharsets.UTF_8)
                                 : Base64.getEncoder().encodeToString(bytes);
    }
    return value;
  }
  private static String time(long micros) {
    return LocalDateTime
        .ofEpochSecond(Math.floorDiv(micros, 1000000L),
            (int) Math.floorMod(micros, 1000000L) * 1000, ZoneOffset.UTC)
        .format(DateTimeFormatter.ISO_LOCAL_DATE_TIME);
  }
  private static String pad(long number, int digits) {
    return String.format("%0" + digits + "d", new Object[] {Long.valueOf(number)});
  }
  private static byte[] unhex(String digits) {
    byte[] out = new byte[digits.length() / 2];
    for (int i = 0; i < out.length; i++)
      out[i] = (byte) Integer.parseInt(digits.substring(2 * i, 2 * i + 2), 16);
    return out;
  }
}
