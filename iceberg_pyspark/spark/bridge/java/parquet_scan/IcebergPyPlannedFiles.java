import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

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
      paths[i] = unescaped(cells[0]);
      sizes[i] = Long.parseLong(cells[1]);
      Object[] values = new Object[fields.length];
      for (int f = 0; f < fields.length; f++) values[f] = fact(cells[f + 2], fields[f].dataType());
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

  static String unescaped(String cell) {
    if (cell.indexOf('\\') < 0) return cell;
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < cell.length(); i++) {
      char c = cell.charAt(i);
      if (c == '\\') {
        c = cell.charAt(++i);
        c = c == 't' ? '\t' : c == 'n' ? '\n' : c;
      }
      out.append(c);
    }
    return out.toString();
  }
  private static Object fact(String cell, DataType type) {
    if (cell.length() == 0) return null;
    if (type instanceof IntegerType || type instanceof DateType) return Integer.valueOf(cell);
    if (type instanceof LongType || type instanceof TimestampType
        || type instanceof TimestampNTZType)
      return Long.valueOf(cell);
    if (type instanceof BooleanType) return Boolean.valueOf(cell);
    if (type instanceof DecimalType)
      return org.apache.spark.sql.types.Decimal.apply(new java.math.BigDecimal(cell),
          ((DecimalType) type).precision(), ((DecimalType) type).scale());
    return UTF8String.fromString(unescaped(cell.substring(1)));
  }
}
