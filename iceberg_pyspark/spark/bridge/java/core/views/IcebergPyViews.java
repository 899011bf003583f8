import java.util.Arrays;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The views of our catalogs, described like Spark's own views: Spark parses the query's text, and
 * resolves its names in the view's catalog and namespace.
 */
class IcebergPyViews {
  /** Return the view with this name for a query, or null if there is none. */
  static Table load(String catalog, String handle, Identifier identifier) {
    V1Table view = described(catalog, handle, identifier);
    if (view == null) return null;
    CatalogTable definition = view.v1Table();
    IcebergPyViewQueries.check(identifier.toString(),
        IcebergPyViewQueries.parse((String) definition.viewText().get()),
        CollectionConverters.asJava(definition.viewCatalogAndNamespace()));
    IcebergPyViewQueries.checkCircle(definition);
    return view;
  }
  /** Return the view with this name, or null if there is none. */
  static V1Table described(String catalog, String handle, Identifier identifier) {
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
