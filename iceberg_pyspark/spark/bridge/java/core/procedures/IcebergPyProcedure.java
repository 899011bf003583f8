import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.types.StructType;

/**
 * A procedure of our catalog. It is not bound, because Spark would take the arguments for
 * complete while it still resolves them.
 */
class IcebergPyProcedure implements UnboundProcedure {
  private final IcebergPyProcedureDefinition definition;
  private final BoundProcedure bound;
  IcebergPyProcedure(String catalog, String handle, String[] defaultNamespace,
      IcebergPyProcedureDefinition definition) {
    this.definition = definition;
    this.bound = new IcebergPyBoundProcedure(catalog, handle, defaultNamespace, definition);
  }
  public String name() { return definition.name(); }
  public String description() { return definition.description(); }
  public BoundProcedure bind(StructType inputType) { return bound; }
}
