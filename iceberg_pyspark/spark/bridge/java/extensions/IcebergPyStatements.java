import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SetTableProperties;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.VariableSubstitution;
import org.apache.spark.unsafe.Platform;

/**
 * Plans Iceberg's ALTER TABLE statements, and statements about our views. A plan sets a property
 * with the statement, so that Spark itself finds the catalog and the table.
 */
class IcebergPyStatements {
  /** The number of words in CREATE OR REPLACE VIEW. */
  private static final int WORDS = 4;

  /** Return the plan of a statement on our table or view; null if `next` must parse the text. */
  static LogicalPlan plan(String text, ParserInterface next) {
    if (IcebergPyBridge.callback == null) return null;
    List words = firstWords(text);
    if (isAboutViews(words)) return IcebergPyViewStatements.plan(text, next);
    if (words.isEmpty() || !words.get(0).equals("ALTER")) return null;
    String statement = new VariableSubstitution().substitute(text);
    IcebergPyParsedStatement parsed = IcebergPyRequests.statementParse(statement);
    if (parsed.table() == null || !isOurs(parsed.table())) return null;
    if (parsed.problem() != null) refuse(statement, parsed.problem());
    try {
      SetTableProperties alter = (SetTableProperties) next.parsePlan(
          "ALTER TABLE " + parsed.quotedTable() + " SET TBLPROPERTIES ('' = '')");
      return new SetTableProperties((LogicalPlan) (Object) alter.table(),
          scalaMap(new Object[] {parsed.property(), parsed.clause()}));
    } catch (ParseException e) {
      Platform.throwException(e);
      return null;
    }
  }

  /** Return whether a statement begins like one about views that are not temporary. */
  private static boolean isAboutViews(List words) {
    int at = words.size() > 1 && words.get(1).equals("OR") ? 3 : 1;
    if (words.size() <= at) return false;
    Object first = words.get(0), what = words.get(at);
    if (first.equals("SHOW"))
      return what.equals("VIEWS") || what.equals("TABLE") || what.equals("CREATE")
          || what.equals("TBLPROPERTIES");
    if (first.equals("DESCRIBE") || first.equals("DESC"))
      return words.contains("EXTENDED") || words.contains("FORMATTED");
    return what.equals("VIEW")
        && (first.equals("CREATE") || first.equals("ALTER") || first.equals("DROP"));
  }
  /** Return the first words of a text in upper case, without blanks and comments before them. */
  private static List firstWords(String text) {
    List words = new ArrayList();
    int at = 0;
    while (at < text.length() && words.size() < WORDS) {
      if (Character.isWhitespace(text.charAt(at)))
        at++;
      else if (text.startsWith("--", at) || text.startsWith("/*", at)) {
        boolean line = text.startsWith("--", at);
        int end = text.indexOf(line ? "\n" : "*/", at + 2);
        if (end < 0) return words;
        at = end + (line ? 1 : 2);
      } else {
        int from = at;
        while (at < text.length() && Character.isLetter(text.charAt(at))) at++;
        if (at == from) return words;
        words.add(text.substring(from, at).toUpperCase(Locale.ROOT));
      }
    }
    return words;
  }

  /** Return whether the catalog of a name, or else the current catalog, is of our class. */
  private static boolean isOurs(List levels) {
    SparkSession spark = IcebergPySessions.active();
    String first = (String) levels.get(0);
    if (levels.size() > 1 && isCatalog(spark, first)) return isOurs(spark, first);
    return isOurs(spark, spark.sessionState().catalogManager().currentCatalog().name());
  }
  static boolean isCatalog(SparkSession spark, String name) {
    return spark.conf().getOption(setting(name)).isDefined();
  }
  static boolean isOurs(SparkSession spark, String catalog) {
    scala.Option name = spark.conf().getOption(setting(catalog));
    return name.isDefined() && name.get().equals(iceberg_pyspark.class.getName());
  }
  private static String setting(String catalog) { return "spark.sql.catalog." + catalog; }

  /** Throw the error that Spark's own parser would throw. */
  private static void refuse(String statement, IcebergPySyntaxProblem problem) {
    Platform.throwException(
        IcebergPyInternals.syntaxError(statement, (int) problem.line(), (int) problem.position(),
            scalaMap(new Object[] {
                "error", problem.near(), "hint", ": expected " + problem.expectation()})));
  }

  private static scala.collection.immutable.Map scalaMap(Object[] pairs) {
    return (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.from(
        scala.jdk.javaapi.CollectionConverters.asScala(IcebergPyBridge.arguments(pairs)));
  }
}
