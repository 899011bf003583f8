import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** Puts our parser before the parsers of copies of a session with Iceberg. */
public class IcebergPyParserBuilder
    extends scala.runtime.AbstractFunction2 implements java.io.Serializable {
  public Object apply(Object session, Object parser) {
    return IcebergPyFrontParser.before((ParserInterface) parser);
  }
}
