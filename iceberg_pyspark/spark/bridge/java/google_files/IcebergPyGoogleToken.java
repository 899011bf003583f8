import com.google.cloud.hadoop.util.AccessTokenProvider;
import java.io.IOException;
import java.lang.reflect.Constructor;
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
    try {
      // the class of the second argument depends on the connector's release
      Constructor constructor = AccessTokenProvider.AccessToken.class.getConstructors()[0];
      Object end = null;
      if (options.endMs() < Long.MAX_VALUE) {
        Instant instant = Instant.ofEpochMilli(options.endMs());
        boolean takesInstant = constructor.getParameterTypes()[1] == Instant.class;
        end = takesInstant ? (Object) instant : (Object) Long.valueOf(options.endMs());
      }
      return (AccessTokenProvider.AccessToken) constructor.newInstance(
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
