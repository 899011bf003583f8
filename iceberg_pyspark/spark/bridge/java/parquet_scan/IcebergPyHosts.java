import java.io.IOException;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.Path;

/** Gets the locations of a file's blocks from a file system. */
class IcebergPyHosts implements Callable {
  private static final BlockLocation[] UNKNOWN = new BlockLocation[0];
  private final Configuration conf;
  private final String path;
  private final long size;
  IcebergPyHosts(Configuration conf, String path, long size) {
    this.conf = conf;
    this.path = path;
    this.size = size;
  }
  /** The locations only affect speed, so a failure of the file system is not an error. */
  public Object call() {
    try {
      Path file = new Path(path);
      return file.getFileSystem(conf).getFileBlockLocations(file, 0, size);
    } catch (IOException e) {
      return UNKNOWN;
    } catch (RuntimeException e) {
      return UNKNOWN;
    }
  }

  /** Return the hosts of the block that has the largest part of a split. */
  static String[] of(BlockLocation[] blocks, long start, long length) {
    BlockLocation best = null;
    long most = 0;
    for (int i = 0; i < blocks.length; i++) {
      long end = Math.min(blocks[i].getOffset() + blocks[i].getLength(), start + length);
      long within = end - Math.max(blocks[i].getOffset(), start);
      if (within <= most) continue;
      most = within;
      best = blocks[i];
    }
    try {
      return best == null ? new String[0] : best.getHosts();
    } catch (IOException e) {
      return new String[0];
    }
  }
}
