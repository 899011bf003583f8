import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.Type;

/**
 * Finds the columns for path and position: by their field ids, or by name in a file without any
 * ids, as arrow/file_fields.py does.
 */
class IcebergPyPositionColumns {
  final PrimitiveType path;
  final PrimitiveType position;
  /** Whether positions have 64 bits. */
  final boolean isLong;
  /** `place` is the beginning of every error message. */
  IcebergPyPositionColumns(MessageType schema, String place) {
    boolean byId = hasIds(schema);
    Map names = new HashMap();
    Iterator columns = schema.getFields().iterator();
    while (columns.hasNext()) {
      Type column = (Type) columns.next();
      Object key = !byId           ? column.getName()
          : column.getId() == null ? null
                                   : (Object) Integer.valueOf(column.getId().intValue());
      if (key == null) continue;
      Type before = (Type) names.put(key, column);
      if (before != null && byId)
        throw IcebergPyReadFailure.invalid(place + ": columns '" + before.getName() + "' and '"
            + column.getName() + "' both have field id " + key);
    }
    path = column(names, byId, "file_path", 2147483546, place);
    if (path.getPrimitiveTypeName() != PrimitiveType.PrimitiveTypeName.BINARY
        || path.getLogicalTypeAnnotation()
                instanceof LogicalTypeAnnotation.DecimalLogicalTypeAnnotation)
      throw wrongType(path, "string", place);
    position = column(names, byId, "pos", 2147483545, place);
    LogicalTypeAnnotation kind = position.getLogicalTypeAnnotation();
    isLong = position.getPrimitiveTypeName() == PrimitiveType.PrimitiveTypeName.INT64;
    if (!isLong && position.getPrimitiveTypeName() != PrimitiveType.PrimitiveTypeName.INT32
        || kind != null && !(kind instanceof LogicalTypeAnnotation.IntLogicalTypeAnnotation))
      throw wrongType(position, "long", place);
  }

  private static boolean hasIds(GroupType type) {
    Iterator fields = type.getFields().iterator();
    while (fields.hasNext()) {
      Type field = (Type) fields.next();
      if (field.getId() != null || !field.isPrimitive() && hasIds(field.asGroupType())) return true;
    }
    return false;
  }
  private static PrimitiveType column(Map names, boolean byId, String name, int id, String place) {
    Type type = (Type) names.get(byId ? (Object) Integer.valueOf(id) : name);
    if (type == null)
      throw IcebergPyReadFailure.invalid(
          place + ": it lacks the required column '" + name + "' (field id " + id + ")");
    if (!type.isPrimitive() || type.isRepetition(Type.Repetition.REPEATED))
      throw wrongType(type, name.equals("pos") ? "long" : "string", place);
    return type.asPrimitiveType();
  }
  private static RuntimeException wrongType(Type column, String expected, String place) {
    return IcebergPyReadFailure.invalid(place + ": column '" + column.getName() + "' is stored as "
        + column + ", which cannot be read as " + expected);
  }
}
