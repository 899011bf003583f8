import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.Enumeration;
import org.apache.spark.sql.sources.DataSourceRegister;

/** The names of registered formats; Spark refuses a format name that two classes have. */
public class IcebergPyFormats {
  /** `ServiceLoader` would make an object of each format, also of Spark's own. */
  public boolean isTaken(String name) throws IOException {
    Enumeration files = IcebergPyFormats.class.getClassLoader().getResources(
        "META-INF/services/" + DataSourceRegister.class.getName());
    while (files.hasMoreElements()) {
      BufferedReader lines = new BufferedReader(
          new InputStreamReader(((URL) files.nextElement()).openStream(), StandardCharsets.UTF_8));
      try {
        for (String line = lines.readLine(); line != null; line = lines.readLine())
          if (name.equalsIgnoreCase(formatOf(line.replaceFirst("#.*", "").trim()))) return true;
      } finally {
        lines.close();
      }
    }
    return false;
  }
  private static String formatOf(String className) {
    if (className.isEmpty() || className.startsWith("org.apache.spark.")) return null;
    try {
      return ((DataSourceRegister) IcebergPyFormats.class.getClassLoader()
                  .loadClass(className)
                  .newInstance())
          .shortName();
    } catch (Exception e) {
      // a registered class that cannot be made has no name
      return null;
    } catch (LinkageError e) {
      return null;
    }
  }
}
