import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * A parser in front of another: it knows Iceberg's statements of ALTER TABLE and those about views
 * of ours, and hands on all else.
 */
public abstract class IcebergPyFrontParser {
  final ParserInterface next;
  IcebergPyFrontParser(ParserInterface next) { this.next = next; }

  /** In front of a parser, once. */
  static ParserInterface inFrontOf(ParserInterface next) {
    return next instanceof IcebergPyFrontParser ? next
                                                : (ParserInterface) new IcebergPyParser(next);
  }
  LogicalPlan plan(String text) { return IcebergPyStatements.plan(text, next); }
}
