import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * A parser before another parser. It parses Iceberg's ALTER TABLE statements and the statements
 * about our views, and passes all other statements on.
 */
public abstract class IcebergPyFrontParser {
  final ParserInterface next;
  IcebergPyFrontParser(ParserInterface next) { this.next = next; }

  /** Put our parser before a parser, unless it is already there. */
  static ParserInterface before(ParserInterface next) {
    return next instanceof IcebergPyFrontParser ? next
                                                : (ParserInterface) new IcebergPyParser(next);
  }
  LogicalPlan plan(String text) {
    IcebergPyThriftThreads.openCatalogs(text);
    return IcebergPyStatements.plan(text, next);
  }
}
