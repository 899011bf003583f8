import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** Puts ours in front of the parsers of sessions that Spark makes of one with Iceberg. */
public class IcebergPyLaterParser
    extends scala.runtime.AbstractFunction2 implements java.io.Serializable {
  public Object apply(Object session, Object parser) {
    return IcebergPyFrontParser.inFrontOf((ParserInterface) parser);
  }
}
