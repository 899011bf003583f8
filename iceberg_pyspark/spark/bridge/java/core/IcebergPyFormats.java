import java.util.Iterator;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import org.apache.spark.sql.sources.DataSourceRegister;

/** The names of formats that Spark finds: two classes of one name are an error to it. */
public class IcebergPyFormats {
  private static final int MOST = 1000;

  public boolean isTaken(String name) {
    Iterator all =
        ServiceLoader.load(DataSourceRegister.class, IcebergPyFormats.class.getClassLoader())
            .iterator();
    for (int i = 0; i < MOST; i++) {
      try {
        if (!all.hasNext()) return false;
        if (((DataSourceRegister) all.next()).shortName().equalsIgnoreCase(name)) return true;
      } catch (ServiceConfigurationError e) {
        // a class that somebody names and that is not there has no name
        continue;
      } catch (LinkageError e) {
        continue;
      }
    }
    return false;
  }
}
