import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
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
   * Of a table of files, which has the facts about each and, where files are grouped, the keys;
   * `keys` is null where they are not.
   */
  static IcebergPyPlannedFiles of(byte[] stream, List facts, List keys) {
    IcebergPyArrowTable table = IcebergPyArrowTable.of(stream);
    try {
      return new IcebergPyPlannedFiles(table.schemaOf(facts), table.texts("location"),
          table.longs("file_size_in_bytes"), table.rows(facts),
          keys == null ? null : table.rows(keys));
    } finally {
      table.close();
    }
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
