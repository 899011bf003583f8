import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.azurebfs.extensions.SASTokenProvider;

/** The SAS token that a catalog vends for an account, as Hadoop asks for it before each request. */
public class IcebergPyAzureToken implements SASTokenProvider {
  private String name;
  private IcebergPyRenewedOptions options;

  public void initialize(Configuration settings, String account) throws IOException {
    name = "fs.azure.sas.fixed.token." + account;
    options = IcebergPyStoreFiles.credentials(settings, name);
  }
  public String getSASToken(String account, String container, String path, String operation)
      throws IOException {
    return (String) options.current().get(name);
  }
}
