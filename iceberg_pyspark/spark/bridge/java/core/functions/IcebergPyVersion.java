import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** The function that tells the implementation of Iceberg and its version. */
public class IcebergPyVersion implements UnboundFunction, ScalarFunction {
  static final String NAME = "iceberg_version";
  private final String release;
  IcebergPyVersion(String release) { this.release = release; }

  public String name() { return NAME; }
  public String description() { return NAME + "(), the implementation of Iceberg and its version"; }
  public BoundFunction bind(StructType input) {
    if (input.size() > 0) throw new UnsupportedOperationException(NAME + " takes no arguments");
    return this;
  }
  public DataType[] inputTypes() { return new DataType[0]; }
  public DataType resultType() { return StringType$.MODULE$; }
  public boolean isResultNullable() { return false; }
  public String canonicalName() { return "iceberg_pyspark." + NAME; }
  public Object produceResult(InternalRow input) { return UTF8String.fromString(release); }
  /** Executors do not have this class, so a plan has the text. */
  Literal literal() { return new Literal(produceResult(null), resultType()); }
}
