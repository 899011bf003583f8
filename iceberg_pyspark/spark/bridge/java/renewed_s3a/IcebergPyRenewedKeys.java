import java.io.IOException;
import java.net.URI;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.s3a.auth.NoAwsCredentialsException;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;
import software.amazon.awssdk.auth.credentials.AwsSessionCredentials;

/** The credentials of one bucket in one process, as S3A asks for them. */
public class IcebergPyRenewedKeys implements AwsCredentialsProvider {
  static final String KEY = "fs.s3a.access.key", SECRET = "fs.s3a.secret.key",
                      TOKEN = "fs.s3a.session.token";
  private final IcebergPyRenewedOptions options;

  IcebergPyRenewedKeys(URI name, Configuration settings) {
    options = new IcebergPyRenewedOptions(name.getScheme(), "s3://" + name.getAuthority(), settings,
        new String[] {KEY, SECRET, TOKEN});
  }

  public AwsCredentials resolveCredentials() {
    Map current;
    try {
      current = options.current();
    } catch (IOException e) {
      // the class whose errors S3A does not retry
      throw new NoAwsCredentialsException("IcebergPyRenewedKeys", e.getMessage());
    }
    String key = (String) current.get(KEY), secret = (String) current.get(SECRET);
    String token = (String) current.get(TOKEN);
    if (token == null) return AwsBasicCredentials.create(key, secret);
    return AwsSessionCredentials.create(key, secret, token);
  }
}
