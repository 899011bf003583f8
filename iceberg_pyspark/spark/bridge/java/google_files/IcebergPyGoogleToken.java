import com.google.cloud.hadoop.util.AccessTokenProvider;
import java.io.IOException;
import java.time.Instant;
import java.util.List;
import org.apache.hadoop.conf.Configuration;

/**
 * The token that a catalog has for a bucket, as Google's connector for Hadoop asks for tokens.
 */
public class IcebergPyGoogleToken implements AccessTokenProvider {
  /** Hadoop's option with the token. */
  private static final String TOKEN = "fs.gs.iceberg-py.token";
  private Configuration settings;
  private IcebergPyRenewedOptions options;

  public void setConf(Configuration settings) {
    this.settings = settings;
    options = IcebergPyStoreFiles.credentials(settings, TOKEN);
  }
  public Configuration getConf() { return settings; }

  public AccessTokenProvider.AccessTokenType getAccessTokenType() {
    return AccessTokenProvider.AccessTokenType.GENERIC;
  }
  /** Return the token; without a time of expiry, the connector does not call `refresh`. */
  public AccessTokenProvider.AccessToken getAccessToken() {
    Class token = AccessTokenProvider.AccessToken.class;
    Object end = null;
    try {
      // the class of the second argument depends on the connector's release
      if (options.endMs() < Long.MAX_VALUE) {
        boolean isLong = token.getConstructors()[0].getParameterTypes()[1] == Long.class;
        end = isLong ? (Object) Long.valueOf(options.endMs())
                     : (Object) Instant.ofEpochMilli(options.endMs());
      }
      return (AccessTokenProvider.AccessToken) token.getConstructors()[0].newInstance(
          new Object[] {options.latest().get(TOKEN), end});
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("the connector's class of tokens has changed: " + e);
    }
  }
  public AccessTokenProvider.AccessToken getAccessToken(List boundaries) {
    return getAccessToken();
  }
  public void refresh() throws IOException { options.current(); }
}
