import org.roaringbitmap.PeekableIntIterator;

/**
 * Looks up positions of a data file in its deleted rows. A task asks for them in ascending order,
 * so most positions are only compared with the next deleted one.
 */
class IcebergPyDeletedCursor {
  private static final long LAST_OF_FIRST = 0xffffffffL;
  private final IcebergPyDeletedRows rows;
  private PeekableIntIterator positions = null;
  private long next = 0;
  private long reached = 0;
  IcebergPyDeletedCursor(IcebergPyDeletedRows rows) {
    this.rows = rows;
    start();
  }

  boolean isDeleted(long position) {
    if (position > LAST_OF_FIRST) return rows.contains(position);
    if (position < reached) start();
    reached = position;
    if (next < position) {
      positions.advanceIfNeeded((int) position);
      peek();
    }
    return next == position;
  }
  private void start() {
    next = Long.MAX_VALUE;
    if (rows.first == null) return;
    positions = rows.first.getIntIterator();
    peek();
  }
  private void peek() {
    next = positions.hasNext() ? positions.peekNext() & LAST_OF_FIRST : Long.MAX_VALUE;
  }
}
