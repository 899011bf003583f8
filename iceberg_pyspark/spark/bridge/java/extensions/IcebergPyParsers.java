import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.SparkSession;

/** The parsers of sessions, with ours in front and without. */
public class IcebergPyParsers {
  private static final Map EXTENDED = new WeakHashMap();

  public void putInFront(Object session) {
    SparkSession spark = (SparkSession) session;
    set(spark, IcebergPyFrontParser.inFrontOf(spark.sessionState().sqlParser()));
    synchronized (EXTENDED) {
      if (EXTENDED.put(spark.extensions(), Boolean.TRUE) == null)
        spark.extensions().injectParser(new IcebergPyLaterParser());
    }
  }
  public void takeOut(Object session) {
    SparkSession spark = (SparkSession) session;
    ParserInterface parser = spark.sessionState().sqlParser();
    if (parser instanceof IcebergPyFrontParser) set(spark, ((IcebergPyFrontParser) parser).next);
  }
  private static void set(SparkSession spark, ParserInterface parser) {
    IcebergPyInternals.setParser(spark.sessionState(), parser);
  }
}
