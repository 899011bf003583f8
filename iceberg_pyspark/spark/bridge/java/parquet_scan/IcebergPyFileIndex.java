import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.InterpretedPredicate;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.PartitionDirectory$;
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

/** Files chosen by Python, each a partition of its own whose values are facts about the file. */
public class IcebergPyFileIndex implements FileIndex, IcebergPyFiles {
  private final String key, root;
  private final String[] paths;
  private final long[] sizes;
  private final InternalRow[] facts;
  private final StructType factSchema;
  private final long total;
  public IcebergPyFileIndex(
      String key, String root, String table, StructType factSchema, long total) {
    String[] lines = table.length() == 0 ? new String[0] : table.split("\n");
    this.key = key;
    this.root = root;
    this.factSchema = factSchema;
    paths = new String[lines.length];
    sizes = new long[lines.length];
    facts = new InternalRow[lines.length];
    this.total = total;
    StructField[] fields = factSchema.fields();
    for (int i = 0; i < lines.length; i++) {
      String[] cells = lines[i].split("\t", -1);
      paths[i] = unescaped(cells[0]);
      sizes[i] = Long.parseLong(cells[1]);
      Object[] values = new Object[fields.length];
      for (int f = 0; f < fields.length; f++) values[f] = fact(cells[f + 2], fields[f].dataType());
      facts[i] = new GenericInternalRow(values);
    }
  }
  private static String unescaped(String cell) {
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
  public scala.collection.immutable.Seq rootPaths() {
    return IcebergPyBridge.seq(IcebergPyBridge.list(new Object[] {new Path(root)}));
  }
  public StructType partitionSchema() { return factSchema; }
  public String[] inputFiles() { return paths; }
  public void refresh() {}
  public long sizeInBytes() { return total; }
  public scala.Option metadataOpsTimeNs() { return scala.Option.empty(); }
  public scala.collection.immutable.Seq listFiles(
      scala.collection.immutable.Seq partitionFilters, scala.collection.immutable.Seq dataFilters) {
    List out = new ArrayList(paths.length);
    // Spark has taken conditions on facts alone out of its plan: what does not fulfil them must not
    // be given
    InterpretedPredicate wanted = condition(partitionFilters);
    for (int i = 0; i < paths.length; i++) {
      if (wanted != null && !wanted.eval(facts[i])) continue;
      FileStatus[] one =
          new FileStatus[] {new FileStatus(sizes[i], false, 1, 134217728L, 0L, new Path(paths[i]))};
      out.add(PartitionDirectory$.MODULE$.apply(facts[i], one));
    }
    return IcebergPyBridge.seq(out);
  }
  /** All the filters at once, on a row of facts; null for none. */
  private InterpretedPredicate condition(scala.collection.immutable.Seq filters) {
    Expression all = null;
    scala.collection.Iterator it = filters.iterator();
    while (it.hasNext()) {
      Expression one = (Expression) it.next();
      all = all == null ? one : new And(all, one);
    }
    if (all == null) return null;
    Map bound = new HashMap();
    it = all.references().iterator();
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next();
      bound.put(
          a.exprId(), new BoundReference(factSchema.fieldIndex(a.name()), a.dataType(), true));
    }
    return Predicate$.MODULE$.createInterpreted(IcebergPyRule.substituted(all, bound));
  }
  public boolean equals(Object other) {
    return other instanceof IcebergPyFileIndex && ((IcebergPyFileIndex) other).key.equals(key);
  }
  public int hashCode() { return key.hashCode(); }
  public String toString() { return "IcebergPy(" + paths.length + " files)"; }
}
