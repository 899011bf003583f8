import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The settings of Spark's readers of files that must not be the session's: they are meant for files
 * of unknown writers, and would return other rows of a table, or fewer.
 */
class IcebergPyReaderSettings {
  /**
   * Files that are missing or damaged are errors: a change would otherwise drop their rows from the
   * table. No date or time is moved between calendars.
   */
  private static final String[][] OPTIONS = {{"ignoreMissingFiles", "false"},
      {"ignoreCorruptFiles", "false"}, {"datetimeRebaseMode", "CORRECTED"},
      {"int96RebaseMode", "CORRECTED"}};
  /**
   * Spark's reader of single rows finds columns by name unless the session, too, asks for field
   * ids: columns that were renamed would be null. Only the reader of batches is used.
   */
  private static final String[][] OF_PARQUET = {
      {"spark.sql.parquet.enableVectorizedReader", "true"},
      {"spark.sql.parquet.enableNestedColumnVectorizedReader", "true"},
      {"spark.sql.parquet.int96TimestampConversion", "false"},
      {"spark.sql.parquet.int96AsTimestamp", "true"}, {"spark.sql.parquet.binaryAsString", "false"},
      {"spark.sql.parquet.inferTimestampNTZ.enabled", "true"},
      {"spark.sql.legacy.parquet.nanosAsLong", "false"}};

  private static Map options() {
    Map out = new HashMap();
    for (int i = 0; i < OPTIONS.length; i++) out.put(OPTIONS[i][0], OPTIONS[i][1]);
    return out;
  }
  static CaseInsensitiveStringMap ofParquet() { return new CaseInsensitiveStringMap(options()); }
  static scala.collection.immutable.Map ofOrc() {
    return (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.from(
        CollectionConverters.asScala(options()));
  }
  /** Return the session, or a copy of it if some setting is another one. */
  static org.apache.spark.sql.classic.SparkSession session(
      org.apache.spark.sql.classic.SparkSession session) {
    boolean same = true;
    for (int i = 0; same && i < OF_PARQUET.length; i++)
      same = is(session.sessionState().conf(), OF_PARQUET[i][0], OF_PARQUET[i][1]);
    if (same) return session;
    org.apache.spark.sql.classic.SparkSession copy = session.cloneSession();
    for (int i = 0; i < OF_PARQUET.length; i++)
      copy.sessionState().conf().setConfString(OF_PARQUET[i][0], OF_PARQUET[i][1]);
    return copy;
  }
  /** A setting that is not set may be one that the release does not have. */
  private static boolean is(SQLConf conf, String name, String value) {
    return conf.getConfString(name, value).trim().equalsIgnoreCase(value);
  }
}
