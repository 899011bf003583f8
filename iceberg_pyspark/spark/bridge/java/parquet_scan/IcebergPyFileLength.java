import java.io.IOException;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** Gets the length of a file from a file system. */
class IcebergPyFileLength implements Callable {
  private final Configuration conf;
  private final String path;
  private final long plannedLength;
  IcebergPyFileLength(Configuration conf, String path, long plannedLength) {
    this.conf = conf;
    this.path = path;
    this.plannedLength = plannedLength;
  }
  /** Return the planned length on failure: the task that reads the file reports the error. */
  public Object call() {
    try {
      Path file = new Path(path);
      return Long.valueOf(file.getFileSystem(conf).getFileStatus(file).getLen());
    } catch (IOException e) {
      return Long.valueOf(plannedLength);
    } catch (RuntimeException e) {
      return Long.valueOf(plannedLength);
    }
  }
}
