import java.io.EOFException;
import java.io.IOException;
import java.util.Arrays;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;

/** Reads the deletion vector of a manifest entry, with the file system of the data files. */
class IcebergPyVectorReader implements Callable {
  private static final int AT_ONCE = 8 << 20;
  private final Configuration conf;
  private final String table;
  private final String location;
  private final long offset;
  private final int size;
  private final long cardinality;
  IcebergPyVectorReader(
      Configuration conf, String table, String location, long offset, int size, long cardinality) {
    this.conf = conf;
    this.table = table;
    this.location = location;
    this.offset = offset;
    this.size = size;
    this.cardinality = cardinality;
  }

  public Object call() {
    String place = "table " + table + ": deletion vector at " + offset + " of " + location;
    byte[] blob;
    try {
      blob = bytes();
    } catch (EOFException e) {
      throw IcebergPyReadFailure.unreadable(
          place + ": " + size + " bytes from there are outside the file", e);
    } catch (IOException e) {
      throw IcebergPyReadFailure.unreadable(place + ": cannot be read: " + e, e);
    }
    IcebergPyDeletionVector vector = new IcebergPyDeletionVector(blob, place);
    if (vector.cardinality != cardinality)
      throw IcebergPyReadFailure.invalid(place + ": deletes " + vector.cardinality
          + " rows, its manifest entry says " + cardinality);
    return vector;
  }

  /** Sizes from damaged metadata may be wrong, so memory grows only with what has been read. */
  private byte[] bytes() throws IOException {
    Path path = new Path(location);
    FSDataInputStream in = path.getFileSystem(conf).open(path);
    try {
      byte[] read = new byte[Math.min(size, AT_ONCE)];
      in.readFully(offset, read, 0, read.length);
      while (read.length < size) {
        int before = read.length;
        read = Arrays.copyOf(read, (int) Math.min(size, 2L * before));
        in.readFully(offset + before, read, before, read.length - before);
      }
      return read;
    } finally {
      in.close();
    }
  }
}
