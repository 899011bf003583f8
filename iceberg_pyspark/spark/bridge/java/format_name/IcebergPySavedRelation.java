import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.StructType;

/** The relation that Spark expects after a save, and looks up in its cache. */
public class IcebergPySavedRelation extends BaseRelation {
  private final SQLContext context;
  IcebergPySavedRelation(SQLContext context) { this.context = context; }
  public SQLContext sqlContext() { return context; }
  public StructType schema() { return new StructType(); }
}
