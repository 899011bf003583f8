import java.util.Comparator;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;

/** Orders the uses of a variant column by their attributes, as the query has them. */
class IcebergPyVariantOrder implements Comparator {
  private final Map attributes;
  IcebergPyVariantOrder(Map attributes) { this.attributes = attributes; }
  public int compare(Object one, Object other) { return Long.compare(id(one), id(other)); }
  private long id(Object use) { return ((Attribute) attributes.get(use)).exprId().id(); }
}
