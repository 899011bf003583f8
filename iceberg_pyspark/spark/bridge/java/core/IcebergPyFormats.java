import java.util.Iterator;
import java.util.ServiceLoader;
import org.apache.spark.sql.sources.DataSourceRegister;

/** The names of formats that Spark finds: two classes of one name are an error to it. */
public class IcebergPyFormats {
  public boolean isTaken(String name) {
    Iterator all =
        ServiceLoader.load(DataSourceRegister.class, IcebergPyFormats.class.getClassLoader())
            .iterator();
    while (all.hasNext())
      if (((DataSourceRegister) all.next()).shortName().equalsIgnoreCase(name)) return true;
    return false;
  }
}
