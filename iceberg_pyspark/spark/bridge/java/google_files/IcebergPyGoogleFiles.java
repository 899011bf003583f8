import com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;

/** Google's connector by the scheme `gs-<digest>`. */
public class IcebergPyGoogleFiles extends IcebergPyStoreFiles {
  protected FileSystem newStore(String scheme, Configuration settings) {
    return new GoogleHadoopFileSystem();
  }
}
