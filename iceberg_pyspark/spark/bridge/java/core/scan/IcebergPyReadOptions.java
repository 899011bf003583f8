import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The options of a read through a catalog, and the session settings for such reads. A wrong value
 * is an error; other names belong to Spark or to another format.
 */
class IcebergPyReadOptions {
  static final String SPLIT_SIZE = "split-size";
  static final String OPEN_COST = "file-open-cost";
  static final String LOCALITY = "locality";
  static final String PRESERVE_GROUPING = "preserve-data-grouping";
  static final String PRESERVE_ORDERING = "preserve-data-ordering";
  /** A view with these options may be written to; Spark refuses a view of a version or time. */
  private static final Set READ_OPTIONS = new HashSet(Arrays.asList(new Object[] {SPLIT_SIZE,
      OPEN_COST, "lookback", LOCALITY, PRESERVE_GROUPING, PRESERVE_ORDERING, "versionasof",
      "timestampasof", "vectorization-enabled", "batch-size"}));
  private static final String SESSION = "spark.sql.iceberg.";
  static final String SESSION_SPLIT_SIZE = SESSION + "read.split-size";
  static final String PARALLELISM = SESSION + "read.adaptive-split-size.parallelism";
  static final String ADAPTIVE = SESSION + "read.adaptive-split-size.enabled";
  static final String SESSION_LOCALITY = SESSION + "locality.enabled";
  static final String PLANNING = SESSION + "planning.";
  static final String AGGREGATES = SESSION + "aggregate-push-down.enabled";
  static final String COLUMN_STATISTICS = SESSION + "report-column-stats";
  private static final String[] FLAGS = {LOCALITY, PRESERVE_GROUPING, PRESERVE_ORDERING};
  private static final String[] FLAGS_OF_SESSIONS = {ADAPTIVE, SESSION_LOCALITY,
      PLANNING + PRESERVE_GROUPING, PLANNING + PRESERVE_ORDERING, AGGREGATES, COLUMN_STATISTICS};
  /** Options that choose the snapshots whose rows a table shows. */
  private static final String[] SNAPSHOT_OPTIONS = {
      "branch", "start-snapshot-id", "end-snapshot-id", "start-timestamp", "end-timestamp"};
  /** Options that choose rows only without a catalog, and what to use instead. */
  private static final String[][] ROW_OPTIONS = {{"snapshot-id", "the option versionAsOf"},
      {"tag", "the option versionAsOf"}, {"as-of-timestamp", "the option timestampAsOf"},
      {"columns", "select(...)"}, {"filter", "where(...)"}};

  /** Refuse wrong values, also of settings that the read does not use. */
  static void checkSession(SQLConf conf) {
    for (int i = 0; i < FLAGS_OF_SESSIONS.length; i++)
      flag(FLAGS_OF_SESSIONS[i], conf.getConfString(FLAGS_OF_SESSIONS[i], "true"));
    number(SESSION_SPLIT_SIZE, conf.getConfString(SESSION_SPLIT_SIZE, "1"), 1);
    number(PARALLELISM, conf.getConfString(PARALLELISM, "1"), 1);
  }

  /** Refuse wrong values, and options that would not have their usual effect on the rows. */
  static void check(String table, CaseInsensitiveStringMap options) {
    if (options.isEmpty()) return;
    for (int i = 0; i < ROW_OPTIONS.length; i++) {
      String name = ROW_OPTIONS[i][0], instead = ROW_OPTIONS[i][1];
      if (options.containsKey(name))
        throw new IcebergPyInvalidRequestException("the option " + name
            + " does not choose rows of " + table + ", which is read through a catalog: use "
            + instead);
    }
    if (options.containsKey(SPLIT_SIZE)) number("option " + SPLIT_SIZE, options.get(SPLIT_SIZE), 1);
    if (options.containsKey(OPEN_COST)) number("option " + OPEN_COST, options.get(OPEN_COST), 0);
    if (options.containsKey("lookback")) number("option lookback", options.get("lookback"), 1);
    for (int i = 0; i < FLAGS.length; i++)
      if (options.containsKey(FLAGS[i])) flag("option " + FLAGS[i], options.get(FLAGS[i]));
  }

  /** Refuse options of reads for the target of a statement, which cannot be narrowed by options. */
  static void checkTarget(String table, CaseInsensitiveStringMap options) {
    for (int i = 0; i < SNAPSHOT_OPTIONS.length; i++)
      if (options.containsKey(SNAPSHOT_OPTIONS[i]))
        throw new IcebergPyInvalidRequestException("the option " + SNAPSHOT_OPTIONS[i]
            + " chooses what is read of " + table + ", and this statement changes rows of it: "
            + (i == 0
                    ? "name the branch as " + table + ".branch_" + options.get(SNAPSHOT_OPTIONS[i])
                    : "leave it out"));
    Iterator others = ofWrite(options).keySet().iterator();
    if (others.hasNext())
      throw new IcebergPyInvalidRequestException("the option " + others.next() + " of " + table
          + " has no effect on a statement that changes rows of it: leave it out; DELETE, "
          + "UPDATE and MERGE go by table properties and settings of the session");
  }
  /** Return a target's options for writes: SQL allows `INSERT INTO t WITH (...)`. */
  static Map ofWrite(CaseInsensitiveStringMap options) {
    Map out = new HashMap(options.asCaseSensitiveMap());
    out.keySet().removeIf(new java.util.function.Predicate() {
      public boolean test(Object name) {
        return READ_OPTIONS.contains(((String) name).toLowerCase(java.util.Locale.ROOT));
      }
    });
    return out;
  }
  /** Return the options that choose snapshots, by their names in lower case. */
  static Map selection(CaseInsensitiveStringMap options) {
    Map out = new HashMap();
    for (int i = 0; i < SNAPSHOT_OPTIONS.length; i++)
      if (options.containsKey(SNAPSHOT_OPTIONS[i]))
        out.put(SNAPSHOT_OPTIONS[i], options.get(SNAPSHOT_OPTIONS[i]));
    return out;
  }

  static long number(String name, String value, long least) {
    try {
      long result = Long.parseLong(value.trim());
      if (result >= least) return result;
    } catch (NumberFormatException e) {
      // thrown below
    }
    throw new IcebergPyInvalidRequestException(
        name + " is '" + value + "': give a whole number, at least " + least);
  }
  /** Return an option, or else a session setting, as true or false; null if neither is set. */
  static Boolean flag(
      CaseInsensitiveStringMap options, String option, SQLConf conf, String setting) {
    if (options.containsKey(option))
      return Boolean.valueOf(flag("option " + option, options.get(option)));
    String value = conf.getConfString(setting, null);
    return value == null ? null : Boolean.valueOf(flag(setting, value));
  }
  static boolean flag(String name, String value) {
    boolean result = value.equalsIgnoreCase("true");
    if (result || value.equalsIgnoreCase("false")) return result;
    throw new IcebergPyInvalidRequestException(name + " is '" + value + "': give true or false");
  }
}
