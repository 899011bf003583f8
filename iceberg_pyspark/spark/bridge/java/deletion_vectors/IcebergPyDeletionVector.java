import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.zip.CRC32;
import org.roaringbitmap.RoaringBitmap;

/**
 * The deleted positions of a data file, from the blob of a deletion vector.
 *
 * The library does not check that containers are sorted and complete, so this class checks them, as
 * formats/puffin/deletion_vectors.py does. Memory is allocated for the existing bytes, not for the
 * declared number of containers.
 */
class IcebergPyDeletionVector extends IcebergPyDeletedRows {
  private static final int MAGIC = 0xd1d33964;
  private static final int SMALLEST_BLOB = 20;
  private static final int WITH_RUNS = 12347;
  private static final int WITHOUT_RUNS = 12346;
  private static final int MAX_CONTAINERS = 1 << 16;
  private static final int LARGEST_ARRAY = 4096;
  /** If some containers have runs, the offsets of containers are stored only above this number. */
  private static final int FEW_CONTAINERS = 3;
  private static final long LAST_KEY = Integer.MAX_VALUE - 1;
  private static final long LAST_OF_LAST_KEY = 1L << 31;

  long cardinality = 0;

  /** `place` is the beginning of every error message. */
  IcebergPyDeletionVector(byte[] blob, String place) {
    if (blob.length < SMALLEST_BLOB)
      throw IcebergPyReadFailure.invalid(
          place + ": " + blob.length + " bytes are too few for a deletion vector");
    ByteBuffer in = ByteBuffer.wrap(blob);
    int length = in.getInt();
    if (length != blob.length - 8)
      throw IcebergPyReadFailure.invalid(place + ": the deletion vector says " + length + " bytes, "
          + (blob.length - 8) + " are there");
    int magic = in.getInt();
    if (magic != MAGIC)
      throw IcebergPyReadFailure.invalid(
          place + ": no deletion vector (wrong magic " + String.format("%08x", magic) + ")");
    CRC32 checksum = new CRC32();
    checksum.update(blob, 4, length);
    if ((int) checksum.getValue() != in.getInt(blob.length - 4))
      throw IcebergPyReadFailure.invalid(place + ": damaged deletion vector (wrong checksum)");
    in.order(ByteOrder.LITTLE_ENDIAN);
    in.limit(blob.length - 4);
    try {
      decode(in);
    } catch (java.nio.BufferUnderflowException e) {
      throw damage(place, "it ends too early");
    } catch (java.io.IOException e) {
      throw damage(place, e.getMessage());
    } catch (IllegalArgumentException e) {
      throw damage(place, e.getMessage());
    }
  }
  private static RuntimeException damage(String place, String why) {
    return IcebergPyReadFailure.invalid(place + ": damaged deletion vector (" + why + ")");
  }

  /** Decode the portable 64-bit format: a 32-bit bitmap for each key. */
  private void decode(ByteBuffer in) throws java.io.IOException {
    long count = in.getLong();
    require(count >= 0, "a negative number of bitmaps");
    long before = -1;
    for (long i = 0; i < count; i++) {
      long key = in.getInt() & 0xffffffffL;
      require(key > before, "keys do not ascend");
      before = key;
      int start = in.position();
      long rows = readCardinality(in);
      if (rows == 0) continue;
      ByteBuffer one = (ByteBuffer) in.duplicate();
      one.order(ByteOrder.LITTLE_ENDIAN);
      one.limit(in.position());
      one.position(start);
      RoaringBitmap bitmap = new RoaringBitmap();
      bitmap.deserialize(one);
      boolean fits = key < LAST_KEY || (bitmap.last() & 0xffffffffL) <= LAST_OF_LAST_KEY;
      require(key <= LAST_KEY && fits, "a position is beyond any file");
      cardinality += rows;
      bytes += 256 + bitmap.getLongSizeInBytes();
      put((int) key, bitmap);
    }
  }

  /** Read past a 32-bit bitmap, check its containers, and return its cardinality. */
  private long readCardinality(ByteBuffer in) {
    int cookie = in.getInt();
    boolean mayRun = (cookie & 0xffff) == WITH_RUNS;
    require(mayRun || cookie == WITHOUT_RUNS, "no bitmap");
    int size = mayRun ? (cookie >>> 16) + 1 : in.getInt();
    require(size >= 0 && size <= MAX_CONTAINERS, size + " containers");
    byte[] runs = new byte[mayRun ? (size + 7) / 8 : 0];
    in.get(runs);
    require(in.remaining() >= 4 * size, "it ends too early");
    int[] sizes = new int[size];
    int before = -1;
    for (int i = 0; i < size; i++) {
      int key = readUnsigned(in);
      require(key > before, "keys of containers do not ascend");
      before = key;
      sizes[i] = readUnsigned(in) + 1;
    }
    if (!mayRun || size > FEW_CONTAINERS)
      for (int i = 0; i < size; i++) in.getInt();
    bytes += 64L * size;
    long all = 0;
    for (int i = 0; i < size; i++) {
      if (mayRun && (runs[i / 8] >>> (i % 8) & 1) == 1)
        all += readRuns(in);
      else {
        if (sizes[i] <= LARGEST_ARRAY)
          checkArray(in, sizes[i]);
        else
          checkBits(in, sizes[i]);
        all += sizes[i];
      }
    }
    return all;
  }
  private static long readRuns(ByteBuffer in) {
    int count = readUnsigned(in), end = 0;
    long all = 0;
    require(count > 0, "a container is empty");
    for (int i = 0; i < count; i++) {
      int start = readUnsigned(in);
      require(i == 0 || start > end, "runs do not ascend");
      end = start + readUnsigned(in) + 1;
      require(end <= MAX_CONTAINERS, "a run is too long");
      all += end - start;
    }
    return all;
  }
  private static void checkArray(ByteBuffer in, int size) {
    int before = -1;
    for (int i = 0; i < size; i++) {
      int value = readUnsigned(in);
      require(value > before, "values do not ascend");
      before = value;
    }
  }
  private static void checkBits(ByteBuffer in, int size) {
    int set = 0;
    for (int i = 0; i < MAX_CONTAINERS / 64; i++) set += Long.bitCount(in.getLong());
    require(set == size, "a cardinality is wrong");
  }
  private static int readUnsigned(ByteBuffer in) { return in.getShort() & 0xffff; }
  private static void require(boolean holds, String otherwise) {
    if (!holds) throw new IllegalArgumentException(otherwise);
  }
}
