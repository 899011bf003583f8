import java.util.Arrays;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * The views of our catalogs, described like Spark's own views: Spark parses the query's text, and
 * resolves its names in the view's catalog and namespace.
 */
class IcebergPyViews {
  /** Return the view with this name, or null if there is none. */
  static Table load(String catalog, String handle, Identifier identifier) {
    IcebergPyViewDefinition view = IcebergPyRequests.viewLoad(
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
