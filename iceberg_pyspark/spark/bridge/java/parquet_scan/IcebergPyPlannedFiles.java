import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/** Files that Python planned, each with values that are constant in the file. */
class IcebergPyPlannedFiles {
  final StructType constantSchema;
  final String[] paths;
  final long[] sizes;
  /** The first bytes of each file's row groups, ascending; null if they are not known. */
  final long[][] splitOffsets;
  final InternalRow[] constants;
  /** The grouping key of each file; null if files are not grouped. */
  final InternalRow[] keys;
  /** The key and AAD prefix of each encrypted file; null if no file is encrypted. */
  final byte[][][] fileKeys;
  private IcebergPyPlannedFiles(StructType constantSchema, String[] paths, long[] sizes,
      long[][] splitOffsets, InternalRow[] constants, InternalRow[] keys, byte[][][] fileKeys) {
    this.constantSchema = constantSchema;
    this.paths = paths;
    this.sizes = sizes;
    this.splitOffsets = splitOffsets;
    this.constants = constants;
    this.keys = keys;
    this.fileKeys = fileKeys;
  }

  /**
   * Read a table of files, which contains the constants of each file and, if files are grouped, the
   * keys. `keys` is null if they are not.
   */
  static IcebergPyPlannedFiles of(byte[] stream, List constants, List keys) {
    IcebergPyArrowTable table = IcebergPyArrowTable.of(stream);
    try {
      return new IcebergPyPlannedFiles(table.schemaOf(constants), table.texts("location"),
          table.longs("file_size_in_bytes"), table.longLists("split_offsets"),
          table.rows(constants), keys == null ? null : table.rows(keys),
          table.pairs("file_key", "aad_prefix"));
    } finally {
      table.close();
    }
  }

  /** Return whether a file has one row group by its manifest, so that it is never split. */
  boolean hasOneRowGroup(int file) {
    return splitOffsets[file] != null && splitOffsets[file].length == 1;
  }

  /** Return only the files to keep, in their order. */
  IcebergPyPlannedFiles only(boolean[] keeps) {
    int count = 0;
    for (int i = 0; i < keeps.length; i++) count += keeps[i] ? 1 : 0;
    IcebergPyPlannedFiles remaining =
        new IcebergPyPlannedFiles(constantSchema, new String[count], new long[count],
            new long[count][], new InternalRow[count], keys == null ? null : new InternalRow[count],
            fileKeys == null ? null : new byte[count][][]);
    int at = 0;
    for (int i = 0; i < keeps.length; i++) {
      if (!keeps[i]) continue;
      remaining.paths[at] = paths[i];
      remaining.sizes[at] = sizes[i];
      remaining.splitOffsets[at] = splitOffsets[i];
      remaining.constants[at] = constants[i];
      if (fileKeys != null) remaining.fileKeys[at] = fileKeys[i];
      if (keys != null) remaining.keys[at] = keys[i];
      at++;
    }
    return remaining;
  }
}
