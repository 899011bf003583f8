import java.util.Map;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Hadoop's local files for one write in the driver's process. Hadoop itself starts a process for
 * the permissions of each file and folder, unless it has its native library, and writes a second
 * file of checksums, which no table keeps: together half of the time of a small file.
 */
public class IcebergPyLocalFiles extends LocalFileSystem {
  private static final String OPTION = "fs.file.impl";

  public IcebergPyLocalFiles() {
    super(new IcebergPyPlainFiles());
    setWriteChecksum(false);
  }

  /** Add the options by which tasks use this class, if they can and no other is chosen. */
  static void addTo(Map options, SparkSession session, String folder) {
    String scheme = new Path(folder).toUri().getScheme();
    if (scheme != null && !scheme.equals("file") || !session.sparkContext().isLocal()) return;
    String own = session.sessionState().newHadoopConf().get(OPTION);
    if (own != null && !own.equals(LocalFileSystem.class.getName())) return;
    options.put(OPTION, IcebergPyLocalFiles.class.getName());
    options.put(OPTION + ".disable.cache", "true");
  }
}
