import java.util.List;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SetTableProperties;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.VariableSubstitution;
import org.apache.spark.unsafe.Platform;

/**
 * Iceberg's statements of ALTER TABLE as plans. They reach our catalog as a property to set, so
 * that Spark itself finds catalog and table.
 */
class IcebergPyStatements {
  /** The plan of a statement on a table of ours; null for what the next parser shall parse. */
  static LogicalPlan plan(String text, ParserInterface next) {
    if (IcebergPyBridge.python == null || !beginsAs("ALTER", text)) return null;
    String statement = new VariableSubstitution().substitute(text);
    IcebergPyReadStatement read = IcebergPyQuestions.statementRead(statement);
    if (read.table() == null || !isOurs(read.table())) return null;
    if (read.problem() != null) refuse(statement, read.problem());
    try {
      SetTableProperties alter = (SetTableProperties) next.parsePlan(
          "ALTER TABLE " + read.quoted() + " SET TBLPROPERTIES ('' = '')");
      return new SetTableProperties((LogicalPlan) (Object) alter.table(),
          scalaMap(new Object[] {read.property(), read.clause()}));
    } catch (ParseException e) {
      Platform.throwException(e);
      return null;
    }
  }

  /** Whether the first word of a text is that one; blanks and comments before it do not count. */
  private static boolean beginsAs(String word, String text) {
    int at = 0;
    while (at < text.length()) {
      if (Character.isWhitespace(text.charAt(at)))
        at++;
      else if (text.startsWith("--", at) || text.startsWith("/*", at)) {
        boolean line = text.startsWith("--", at);
        int end = text.indexOf(line ? "\n" : "*/", at + 2);
        if (end < 0) return false;
        at = end + (line ? 1 : 2);
      } else
        break;
    }
    return text.regionMatches(true, at, word, 0, word.length());
  }

  /** Whether the catalog that a name begins with, or else the current one, is of our class. */
  private static boolean isOurs(List levels) {
    SparkSession spark = IcebergPySessions.active();
    String first = (String) levels.get(0);
    if (levels.size() > 1 && spark.conf().getOption(setting(first)).isDefined())
      return isOurs(spark, first);
    return isOurs(spark, spark.sessionState().catalogManager().currentCatalog().name());
  }
  private static boolean isOurs(SparkSession spark, String catalog) {
    scala.Option name = spark.conf().getOption(setting(catalog));
    return name.isDefined() && name.get().equals(iceberg_pyspark.class.getName());
  }
  private static String setting(String catalog) { return "spark.sql.catalog." + catalog; }

  /** Raise the error that Spark's own parser would. */
  private static void refuse(String statement, IcebergPySyntaxProblem problem) {
    Platform.throwException(IcebergPyInternals.syntaxError(statement, (int) problem.line(),
        (int) problem.position(),
        scalaMap(
            new Object[] {"error", problem.near(), "hint", ": expected " + problem.expected()})));
  }

  private static scala.collection.immutable.Map scalaMap(Object[] pairs) {
    return (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.from(
        scala.jdk.javaapi.CollectionConverters.asScala(IcebergPyBridge.arguments(pairs)));
  }
}
