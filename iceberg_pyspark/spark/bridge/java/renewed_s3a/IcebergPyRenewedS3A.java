import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.s3a.AWSCredentialProviderList;
import org.apache.hadoop.fs.s3a.S3AFileSystem;

/**
 * Hadoop's file system for S3 with credentials that are renewed before they expire. Executors load
 * this class by the setting `fs.<scheme>.impl`, from the jar that `IcebergPyTaskStores` sends.
 *
 * The provider is added as an object: by its name S3A would look for it beside its own classes,
 * where executors that have hadoop-aws on their class path do not see our jar.
 */
public class IcebergPyRenewedS3A extends S3AFileSystem {
  public void initialize(URI name, Configuration settings) throws IOException {
    IcebergPyRenewedKeys keys = new IcebergPyRenewedKeys(name, settings);
    Configuration own = new Configuration(settings);
    // a provider that has no keys, so that S3A asks the one behind it
    own.set(
        "fs.s3a.aws.credentials.provider", "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider");
    own.unset(IcebergPyRenewedKeys.KEY);
    own.unset(IcebergPyRenewedKeys.SECRET);
    own.unset(IcebergPyRenewedKeys.TOKEN);
    // the start must send no request, because it has no keys yet
    own.set("fs.s3a.bucket.probe", "0");
    own.set("fs.s3a.multipart.purge", "false");
    super.initialize(name, own);
    AWSCredentialProviderList providers = getS3AInternals().shareCredentials("renewal");
    providers.add(keys);
    providers.close();
  }
}
