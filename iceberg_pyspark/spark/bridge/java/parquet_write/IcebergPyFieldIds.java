import java.util.ArrayList;
import java.util.List;
import java.util.StringTokenizer;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.Type;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;

/**
 * Spark's Parquet writer, with the field ids of the table's schema: Spark has no place for those of
 * list elements, map keys and map values. Executors have this class.
 */
public class IcebergPyFieldIds extends ParquetWriteSupport {
  /** The option with the ids, see `field_ids` of native_columns.py. */
  static final String OPTION = "iceberg-py.field-ids";

  public WriteContext init(Configuration conf) {
    WriteContext context = super.init(conf);
    StringTokenizer ids = new StringTokenizer(conf.get(OPTION));
    MessageType columns = context.getSchema();
    return new WriteContext(
        new MessageType(columns.getName(), withIds(columns, columns.getFieldCount(), ids)),
        context.getExtraMetaData());
  }

  private static List withIds(GroupType fields, int count, StringTokenizer ids) {
    List out = new ArrayList();
    for (int i = 0; i < count; i++) out.add(withIds(fields.getType(i), ids));
    return out;
  }
  private static Type withIds(Type field, StringTokenizer ids) {
    int id = Integer.parseInt(ids.nextToken());
    int children = Integer.parseInt(ids.nextToken());
    if (children == 0) return field.withId(id);
    GroupType group = field.asGroupType();
    LogicalTypeAnnotation kind = group.getLogicalTypeAnnotation();
    if (!(kind instanceof LogicalTypeAnnotation.ListLogicalTypeAnnotation
            || kind instanceof LogicalTypeAnnotation.MapLogicalTypeAnnotation))
      return group.withNewFields(withIds(group, children, ids)).withId(id);
    // the repeated group in between has no id
    GroupType repeated = group.getType(0).asGroupType();
    List entry = new ArrayList();
    entry.add(repeated.withNewFields(withIds(repeated, children, ids)));
    return group.withNewFields(entry).withId(id);
  }
}
