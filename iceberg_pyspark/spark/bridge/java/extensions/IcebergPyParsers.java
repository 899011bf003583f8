import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.SparkSession;

/** Adds our parser to sessions and removes it. */
public class IcebergPyParsers {
  public void putInFront(Object session) {
    SparkSession spark = (SparkSession) session;
    set(spark, IcebergPyFrontParser.inFrontOf(spark.sessionState().sqlParser()));
  }
  public void takeOut(Object session) {
    SparkSession spark = (SparkSession) session;
    ParserInterface parser = spark.sessionState().sqlParser();
    if (parser instanceof IcebergPyFrontParser) set(spark, ((IcebergPyFrontParser) parser).next);
  }
  /** Return the function that puts our parser before the parsers of later sessions. */
  public scala.Function2 later() { return new IcebergPyLaterParser(); }
  private static void set(SparkSession spark, ParserInterface parser) {
    IcebergPyInternals.setParser(spark.sessionState(), parser);
  }
}
