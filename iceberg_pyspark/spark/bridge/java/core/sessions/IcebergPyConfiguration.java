import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutput;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.WritableUtils;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Hadoop's settings for a broadcast, without the source of each setting: Hadoop compresses every
 * source separately, which took four of the five milliseconds of a scan's broadcast. Executors read
 * a configuration of Hadoop's own class.
 */
public class IcebergPyConfiguration extends Configuration {
  /** The defaults of schedulers of jobs, which Spark does not use. */
  private static final Map DEFAULTS_OF_JOBS = defaultsOfJobs();
  private static final boolean READABLE = isReadable();

  /** Copy the settings of a reader: Spark copies them again for every file. */
  private IcebergPyConfiguration(Configuration settings) {
    super(false);
    setClassLoader(settings.getClassLoader());
    Iterator it = settings.iterator();
    while (it.hasNext()) {
      Map.Entry entry = (Map.Entry) it.next();
      if (!entry.getValue().equals(DEFAULTS_OF_JOBS.get(entry.getKey())))
        set((String) entry.getKey(), (String) entry.getValue());
    }
  }
  private static Map defaultsOfJobs() {
    Map out = new HashMap();
    Configuration settings = new Configuration();
    Iterator it = settings.iterator();
    while (it.hasNext()) {
      Map.Entry entry = (Map.Entry) it.next();
      String key = (String) entry.getKey();
      if (!key.startsWith("mapreduce.") && !key.startsWith("yarn.")) continue;
      String[] sources = settings.getPropertySources(key);
      if (sources != null && sources.length == 1 && sources[0].endsWith("-default.xml"))
        out.put(key, entry.getValue());
    }
    return out;
  }

  /** Return the settings of a session and additional options, by Hadoop's names. */
  static Configuration of(org.apache.spark.sql.classic.SparkSession session, Map options) {
    Configuration all = session.sessionState().newHadoopConfWithOptions(
        (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.from(
            CollectionConverters.asScala(options)));
    return READABLE ? new IcebergPyConfiguration(all) : all;
  }

  public void write(DataOutput out) throws IOException {
    Map all = values(this);
    WritableUtils.writeVInt(out, all.size());
    Iterator it = all.entrySet().iterator();
    while (it.hasNext()) {
      Map.Entry entry = (Map.Entry) it.next();
      Text.writeString(out, (String) entry.getKey());
      Text.writeString(out, (String) entry.getValue());
      WritableUtils.writeCompressedStringArray(out, null);
    }
  }

  /** Return the raw value of every setting, with its references to other settings. */
  private static Map values(Configuration settings) {
    Map out = new HashMap();
    Iterator it = settings.iterator();
    while (it.hasNext()) {
      Map.Entry entry = (Map.Entry) it.next();
      out.put(entry.getKey(), entry.getValue());
    }
    return out;
  }

  /** Return whether this release of Hadoop can read what `write` writes. */
  private static boolean isReadable() {
    try {
      Configuration settings = new Configuration(false);
      settings.set("iceberg-py.one", "${iceberg-py.two}");
      settings.set("iceberg-py.two", "a value");
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      new IcebergPyConfiguration(settings).write(new DataOutputStream(bytes));
      Configuration read = new Configuration(false);
      read.readFields(new DataInputStream(new ByteArrayInputStream(bytes.toByteArray())));
      return values(read).equals(values(settings));
    } catch (IOException e) {
      return false;
    } catch (RuntimeException e) {
      return false;
    }
  }
}
