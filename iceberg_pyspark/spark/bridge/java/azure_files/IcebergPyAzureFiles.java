import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem;
import org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem;

/** Hadoop's file system for Azure by the schemes `abfs-<digest>` and `abfss-<digest>`. */
public class IcebergPyAzureFiles extends IcebergPyStoreFiles {
  protected FileSystem newStore(String scheme, Configuration settings) {
    // emulators of Azure have no TLS, also where locations begin with abfss://
    boolean plain = settings.getBoolean("fs.azure.iceberg-py.http", false);
    if ("abfs".equals(scheme) || plain) return new AzureBlobFileSystem();
    return new SecureAzureBlobFileSystem();
  }
}
