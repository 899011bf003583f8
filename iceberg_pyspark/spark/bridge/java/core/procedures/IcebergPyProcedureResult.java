import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** The result of a procedure, with columns of strings and integers. */
class IcebergPyProcedureResult implements LocalScan {
  private final StructType schema;
  private final List rows;
  IcebergPyProcedureResult(StructType schema, List rows) {
    this.schema = schema;
    this.rows = rows;
  }
  public StructType readSchema() { return schema; }
  public InternalRow[] rows() {
    InternalRow[] out = new InternalRow[rows.size()];
    for (int i = 0; i < out.length; i++) {
      Object[] values = ((List) rows.get(i)).toArray();
      for (int v = 0; v < values.length; v++) {
        if (values[v] instanceof String)
          values[v] = UTF8String.fromString((String) values[v]);
        else if (values[v] != null)
          values[v] = number((Number) values[v], schema.fields()[v].dataType());
      }
      out[i] = new GenericInternalRow(values);
    }
    return out;
  }
  private static Object number(Number value, DataType type) {
    return type instanceof IntegerType ? (Object) Integer.valueOf(value.intValue())
                                       : (Object) Long.valueOf(value.longValue());
  }
}
