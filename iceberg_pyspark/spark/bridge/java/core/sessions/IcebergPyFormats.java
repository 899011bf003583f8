import java.util.Iterator;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import org.apache.spark.sql.sources.DataSourceRegister;

/** The names of registered formats; Spark refuses a format name that two classes have. */
public class IcebergPyFormats {
  private static final int MAX_ATTEMPTS = 1000;

  public boolean isTaken(String name) {
    Iterator all =
        ServiceLoader.load(DataSourceRegister.class, IcebergPyFormats.class.getClassLoader())
            .iterator();
    for (int i = 0; i < MAX_ATTEMPTS; i++) {
      try {
        if (!all.hasNext()) return false;
        if (((DataSourceRegister) all.next()).shortName().equalsIgnoreCase(name)) return true;
      } catch (ServiceConfigurationError e) {
        // a registered class that does not exist has no name
        continue;
      } catch (LinkageError e) {
        continue;
      }
    }
    return false;
  }
}
