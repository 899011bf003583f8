import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Files chosen by Python, each with facts about it that are constants of all its rows. */
class IcebergPyPlannedFiles {
  final StructType factSchema;
  final String[] paths;
  final long[] sizes;
  final InternalRow[] facts;
  /** What files are grouped by, for each of them; null where they are not. */
  final InternalRow[] keys;
  private IcebergPyPlannedFiles(StructType factSchema, String[] paths, long[] sizes,
      InternalRow[] facts, InternalRow[] keys) {
    this.factSchema = factSchema;
    this.paths = paths;
    this.sizes = sizes;
    this.facts = facts;
    this.keys = keys;
  }

  /**
   * Of a table as text: a line for each file, with its path, its size, the facts about it, and its
   * key where there is a schema of keys.
   */
  static IcebergPyPlannedFiles of(String table, StructType factSchema, StructType keySchema) {
    String[] lines = table.length() == 0 ? new String[0] : table.split("\n");
    String[] paths = new String[lines.length];
    long[] sizes = new long[lines.length];
    InternalRow[] facts = new InternalRow[lines.length];
    InternalRow[] keys = keySchema == null ? null : new InternalRow[lines.length];
    for (int i = 0; i < lines.length; i++) {
      String[] cells = lines[i].split("\t", -1);
      paths[i] = IcebergPyCells.text(cells[0]);
      sizes[i] = Long.parseLong(cells[1]);
      facts[i] = row(cells, 2, factSchema);
      if (keys != null) keys[i] = row(cells, 2 + factSchema.size(), keySchema);
    }
    return new IcebergPyPlannedFiles(factSchema, paths, sizes, facts, keys);
  }
  private static InternalRow row(String[] cells, int first, StructType schema) {
    StructField[] fields = schema.fields();
    Object[] values = new Object[fields.length];
    for (int f = 0; f < fields.length; f++)
      values[f] = IcebergPyCells.value(cells[first + f], fields[f].dataType());
    return new GenericInternalRow(values);
  }

  /** Those of the files that are kept, in their order. */
  IcebergPyPlannedFiles only(boolean[] kept) {
    int count = 0;
    for (int i = 0; i < kept.length; i++) count += kept[i] ? 1 : 0;
    IcebergPyPlannedFiles left = new IcebergPyPlannedFiles(factSchema, new String[count],
        new long[count], new InternalRow[count], keys == null ? null : new InternalRow[count]);
    int at = 0;
    for (int i = 0; i < kept.length; i++) {
      if (!kept[i]) continue;
      left.paths[at] = paths[i];
      left.sizes[at] = sizes[i];
      left.facts[at] = facts[i];
      if (keys != null) left.keys[at] = keys[i];
      at++;
    }
    return left;
  }
}
