import java.util.Arrays;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * Views of our catalogs, as Spark takes those of its own: a description with the query's text,
 * which Spark parses and resolves where the view's names are.
 */
class IcebergPyViews {
  /** The view of a name; null if there is none. */
  static Table load(String catalog, String handle, Identifier identifier) {
    IcebergPyViewDefinition view = IcebergPyQuestions.viewLoad(
        handle, IcebergPyBridge.list(identifier.namespace()), identifier.name());
    if (!view.exists()) return null;
    StructType schema = (StructType) DataType.fromJson(view.schema());
    String[] levels = identifier.namespace();
    return IcebergPyInternals.view(new TableIdentifier(identifier.name(),
                                       scala.Option.apply(String.join(".", Arrays.asList(levels))),
                                       scala.Option.apply(catalog)),
        schema, view.sql(), view.currentCatalog(), IcebergPyBridge.seq(view.currentNamespace()));
  }
}
