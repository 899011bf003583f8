import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/** Files chosen by Python, each with values that all its rows have. */
class IcebergPyPlannedFiles {
  final StructType constantSchema;
  final String[] paths;
  final long[] sizes;
  final InternalRow[] constants;
  /** What files are grouped by, for each of them; null where they are not. */
  final InternalRow[] keys;
  private IcebergPyPlannedFiles(StructType constantSchema, String[] paths, long[] sizes,
      InternalRow[] constants, InternalRow[] keys) {
    this.constantSchema = constantSchema;
    this.paths = paths;
    this.sizes = sizes;
    this.constants = constants;
    this.keys = keys;
  }

  /**
   * Of a table of files, which has the constants about each and, where files are grouped, the keys;
   * `keys` is null where they are not.
   */
  static IcebergPyPlannedFiles of(byte[] stream, List constants, List keys) {
    IcebergPyArrowTable table = IcebergPyArrowTable.of(stream);
    try {
      return new IcebergPyPlannedFiles(table.schemaOf(constants), table.texts("location"),
          table.longs("file_size_in_bytes"), table.rows(constants),
          keys == null ? null : table.rows(keys));
    } finally {
      table.close();
    }
  }

  /** Those of the files that are kept, in their order. */
  IcebergPyPlannedFiles only(boolean[] keeps) {
    int count = 0;
    for (int i = 0; i < keeps.length; i++) count += keeps[i] ? 1 : 0;
    IcebergPyPlannedFiles remaining = new IcebergPyPlannedFiles(constantSchema, new String[count],
        new long[count], new InternalRow[count], keys == null ? null : new InternalRow[count]);
    int at = 0;
    for (int i = 0; i < keeps.length; i++) {
      if (!keeps[i]) continue;
      remaining.paths[at] = paths[i];
      remaining.sizes[at] = sizes[i];
      remaining.constants[at] = constants[i];
      if (keys != null) remaining.keys[at] = keys[i];
      at++;
    }
    return remaining;
  }
}
