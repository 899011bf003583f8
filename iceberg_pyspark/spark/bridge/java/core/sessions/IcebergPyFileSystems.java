import com.fasterxml.jackson.core.JsonProcessingException;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.spark.sql.classic.SparkSession;

/** The file systems that a session has for the schemes of locations. */
public class IcebergPyFileSystems {
  /** Google's connector, which came before Hadoop's own file system for `gs`. */
  private static final String GOOGLE = "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem";
  /** The client for blobs of Hadoop's file system for Azure, which came with Hadoop 3.4.2. */
  private static final String BLOBS = "org.apache.hadoop.fs.azurebfs.services.AbfsBlobClient";

  /** The prefix of S3A's options for one bucket, which replace those for all buckets. */
  private static final String BUCKETS = "fs.s3a.bucket.";

  /** Return the class for a scheme and the options that it needs, as JSON; null without a class. */
  public String find(Object session, String scheme) throws JsonProcessingException {
    Configuration settings = ((SparkSession) session).sessionState().newHadoopConf();
    Map options = new HashMap();
    String name = className(scheme, settings);
    // since 3.5 Hadoop's defaults name a class of `hadoop-gcp`, also where only the connector is
    if (name == null && "gs".equals(scheme) && settings.getClassByNameOrNull(GOOGLE) != null) {
      name = GOOGLE;
      options.put("fs.gs.impl", GOOGLE);
    }
    if (name == null) return null;
    if (GOOGLE.equals(name)) addPlainSizes(options, settings);
    Map description = new HashMap();
    description.put("name", name);
    description.put("options", options);
    description.put(
        "has_blob_interface", Boolean.valueOf(settings.getClassByNameOrNull(BLOBS) != null));
    description.put("bucket_options", settings.getPropsWithPrefix(BUCKETS).keySet());
    return IcebergPyBridge.JSON.writeValueAsString(description);
  }

  /** Return, as JSON, how the JVM names local files. */
  public String local(Object session) throws JsonProcessingException {
    Configuration settings = ((SparkSession) session).sessionState().newHadoopConf();
    Map description = new HashMap();
    description.put("encoding", System.getProperty("sun.jnu.encoding"));
    description.put("default_file_system", FileSystem.getDefaultUri(settings).toString());
    return IcebergPyBridge.JSON.writeValueAsString(description);
  }

  private static String className(String scheme, Configuration settings) {
    try {
      return FileSystem.getFileSystemClass(scheme, settings).getName();
    } catch (Exception e) {
      return null;
    } catch (LinkageError e) {
      return null;
    }
  }

  /** Add sizes without their units: Hadoop's defaults have units, which the connector refuses. */
  private static void addPlainSizes(Map options, Configuration settings) {
    Iterator all = settings.iterator();
    while (all.hasNext()) {
      Map.Entry option = (Map.Entry) all.next();
      String name = (String) option.getKey();
      if (name.startsWith("fs.gs.") && ((String) option.getValue()).matches("\\d+[kKmMgG]"))
        options.put(name, String.valueOf(settings.getLongBytes(name, 0)));
    }
  }
}
