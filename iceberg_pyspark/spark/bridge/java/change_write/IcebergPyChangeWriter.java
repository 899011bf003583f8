import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.CollectionAccumulator;

/** Writes the rows of one file, without the three columns that say what they change. */
class IcebergPyChangeWriter extends OutputWriter {
  private final OutputWriter file;
  private final IcebergPyTouchedRows rows;
  private final CollectionAccumulator touched;
  /** The columns of an unsafe row, if these do not move without the last three; or null. */
  private final UnsafeRow start;
  private final StructType columns;
  /** Copies the columns of any other row; made only if there is one. */
  private UnsafeProjection copy;
  IcebergPyChangeWriter(OutputWriter file, StructType columns, CollectionAccumulator touched) {
    this.file = file;
    this.touched = touched;
    int count = columns.length();
    rows = new IcebergPyTouchedRows(count);
    boolean staysPut = UnsafeRow.calculateBitSetWidthInBytes(count)
        == UnsafeRow.calculateBitSetWidthInBytes(count + IcebergPyTouchedRows.COLUMNS);
    start = staysPut ? new UnsafeRow(count) : null;
    this.columns = columns;
  }

  public void write(InternalRow row) {
    if (!rows.add(row)) return;
    if (start == null || !(row instanceof UnsafeRow)) {
      if (copy == null) copy = UnsafeProjection.create(columns);
      file.write(copy.apply(row));
      return;
    }
    UnsafeRow all = (UnsafeRow) row;
    start.pointTo(all.getBaseObject(), all.getBaseOffset(), all.getSizeInBytes());
    file.write(start);
  }
  public void close() {
    file.close();
    try {
      touched.add(rows.describe());
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }
  public String path() { return file.path(); }
}
