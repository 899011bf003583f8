import java.io.IOException;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The file with the first offset of a stream; Iceberg's Java connector has it in this place too.
 */
class IcebergPyFirstOffset {
  private final Path path;
  private final FileSystem files;
  /** `checkpoint` is the folder that Spark gives the source in the query's checkpoint. */
  IcebergPyFirstOffset(String checkpoint) throws IOException {
    path = new Path(new Path(checkpoint, "offsets"), "0");
    files = path.getFileSystem(IcebergPySessions.active().sessionState().newHadoopConf());
  }
  /** Return the content, or null if the stream is new. */
  String read() throws IOException {
    if (!files.exists(path)) return null;
    byte[] bytes = new byte[(int) files.getFileStatus(path).getLen()];
    FSDataInputStream in = files.open(path);
    try {
      in.readFully(bytes);
    } finally {
      in.close();
    }
    return new String(bytes, "UTF-8");
  }
  /** Write the whole file at once: half an offset would end the query for good. */
  void write(String json) throws IOException {
    Path temporary = new Path(path.getParent(), "." + java.util.UUID.randomUUID() + ".tmp");
    FSDataOutputStream out = files.create(temporary, false);
    try {
      out.write(json.getBytes("UTF-8"));
    } finally {
      out.close();
    }
    if (!files.rename(temporary, path))
      throw new IOException("the first offset of the stream could not be written to " + path);
  }
}
