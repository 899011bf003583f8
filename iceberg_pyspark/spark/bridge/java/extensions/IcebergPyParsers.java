import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.SparkSession;

/** Adds our parser to sessions and removes it. */
public class IcebergPyParsers {
  public void inject(Object session) {
    SparkSession spark = (SparkSession) session;
    set(spark, IcebergPyFrontParser.before(spark.sessionState().sqlParser()));
  }
  public void remove(Object session) {
    SparkSession spark = (SparkSession) session;
    ParserInterface parser = spark.sessionState().sqlParser();
    if (parser instanceof IcebergPyFrontParser) set(spark, ((IcebergPyFrontParser) parser).next);
  }
  /** Return the function that puts our parser before the parsers of later sessions. */
  public scala.Function2 builder() { return new IcebergPyParserBuilder(); }
  private static void set(SparkSession spark, ParserInterface parser) {
    IcebergPyInternals.setParser(spark.sessionState(), parser);
  }
}
