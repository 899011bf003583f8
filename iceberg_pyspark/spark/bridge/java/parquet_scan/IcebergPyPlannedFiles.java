import java.util.ArrayList;
import java.util.List;
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
  private IcebergPyPlannedFiles(
      StructType factSchema, String[] paths, long[] sizes, InternalRow[] facts) {
    this.factSchema = factSchema;
    this.paths = paths;
    this.sizes = sizes;
    this.facts = facts;
  }

  /** Of a table as text: a line for each file, with its path, its size and the facts about it. */
  static IcebergPyPlannedFiles of(String table, StructType factSchema) {
    String[] lines = table.length() == 0 ? new String[0] : table.split("\n");
    String[] paths = new String[lines.length];
    long[] sizes = new long[lines.length];
    InternalRow[] facts = new InternalRow[lines.length];
    StructField[] fields = factSchema.fields();
    for (int i = 0; i < lines.length; i++) {
      String[] cells = lines[i].split("\t", -1);
      paths[i] = IcebergPyCells.text(cells[0]);
      sizes[i] = Long.parseLong(cells[1]);
      Object[] values = new Object[fields.length];
      for (int f = 0; f < fields.length; f++)
        values[f] = IcebergPyCells.value(cells[f + 2], fields[f].dataType());
      facts[i] = new GenericInternalRow(values);
    }
    return new IcebergPyPlannedFiles(factSchema, paths, sizes, facts);
  }

  /** Those of the files that are kept, in their order. */
  IcebergPyPlannedFiles only(boolean[] kept) {
    List found = new ArrayList();
    for (int i = 0; i < kept.length; i++)
      if (kept[i]) found.add(Integer.valueOf(i));
    int count = found.size();
    String[] keptPaths = new String[count];
    long[] keptSizes = new long[count];
    InternalRow[] keptFacts = new InternalRow[count];
    for (int i = 0; i < count; i++) {
      int from = ((Integer) found.get(i)).intValue();
      keptPaths[i] = paths[from];
      keptSizes[i] = sizes[from];
      keptFacts[i] = facts[from];
    }
    return new IcebergPyPlannedFiles(factSchema, keptPaths, keptSizes, keptFacts);
  }
}
