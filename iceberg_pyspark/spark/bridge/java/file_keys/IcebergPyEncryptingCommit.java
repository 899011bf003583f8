import org.apache.hadoop.fs.Path;
import org.apache.spark.internal.io.HadoopMapReduceCommitProtocol;

/** Spark's own commit protocol, with the secret from which the keys of the files are made. */
public class IcebergPyEncryptingCommit extends HadoopMapReduceCommitProtocol {
  private final String job;
  private final String folder;
  private final byte[][] secret;

  IcebergPyEncryptingCommit(String job, String folder, byte[][] secret) {
    super(job, folder, false);
    this.job = job;
    this.folder = folder;
    this.secret = secret;
  }

  // not private: Janino makes static methods of those
  public Object readResolve() {
    return new IcebergPyEncryptingCommit(
        job, folder, IcebergPyFileKeys.hold(new Path(folder), secret));
  }
}
