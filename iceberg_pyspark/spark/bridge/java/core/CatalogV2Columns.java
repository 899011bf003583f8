import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Columns of a schema as Spark's catalogs give them. */
class CatalogV2Columns {
  static Column[] of(StructType schema) {
    Column[] out = new Column[schema.fields().length];
    for (int i = 0; i < out.length; i++) {
      StructField f = schema.fields()[i];
      out[i] = Column.create(f.name(), f.dataType(), f.nullable(),
          f.getComment().isDefined() ? (String) f.getComment().get() : null, null);
    }
    return out;
  }
}
