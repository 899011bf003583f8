import java.io.IOException;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.Path;

/** Asks a file system where the blocks of a file are. */
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
  /** Where they are is only a matter of speed: a file system that fails to say it is no error. */
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

  /** The hosts that have most of a piece of a file. */
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
