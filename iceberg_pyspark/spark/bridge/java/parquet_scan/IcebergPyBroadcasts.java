/**
 * A cache of broadcasts by the digest of their content: the last used ones, up to a number of
 * bytes. A broadcast costs more than planning.
 */
class IcebergPyBroadcasts {
  private static final long MAX_BYTES = 64L << 20;
  private final java.util.LinkedHashMap entries = new java.util.LinkedHashMap(16, 0.75f, true);
  private long bytes = 0;

  synchronized Object get(String digest) {
    Object[] entry = (Object[]) entries.get(digest);
    return entry == null ? null : entry[0];
  }
  synchronized void put(String digest, Object broadcast, long size) {
    if (size > MAX_BYTES || entries.containsKey(digest)) return;
    entries.put(digest, new Object[] {broadcast, Long.valueOf(size)});
    bytes += size;
    java.util.Iterator oldest = entries.values().iterator();
    while (bytes > MAX_BYTES) {
      bytes -= ((Long) ((Object[]) oldest.next())[1]).longValue();
      oldest.remove();
    }
  }
}
