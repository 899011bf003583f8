import com.google.cloud.hadoop.util.AccessTokenProvider;
import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;

/**
 * The token that a catalog has for a bucket, as Google's connector for Hadoop asks for tokens.
 */
public class IcebergPyGoogleToken implements AccessTokenProvider {
  /** Hadoop's option with the token. */
  private static final String TOKEN = "fs.gs.iceberg-py.token";
  private Configuration settings;

  public void setConf(Configuration settings) { this.settings = settings; }
  public Configuration getConf() { return settings; }

  public AccessTokenProvider.AccessTokenType getAccessTokenType() {
    return AccessTokenProvider.AccessTokenType.GENERIC;
  }
  /** Return the token without a time of expiry, so that the connector does not ask again. */
  public AccessTokenProvider.AccessToken getAccessToken() {
    try {
      // the class of the second argument depends on the connector's release
      return (AccessTokenProvider.AccessToken)
          AccessTokenProvider.AccessToken.class.getConstructors()[0]
              .newInstance(new Object[] {settings.get(TOKEN), null});
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("the connector's class of tokens has changed: " + e);
    }
  }
  public AccessTokenProvider.AccessToken getAccessToken(List boundaries) {
    return getAccessToken();
  }
  public void refresh() throws IOException {
    // the driver chooses the token when it plans
  }
}
