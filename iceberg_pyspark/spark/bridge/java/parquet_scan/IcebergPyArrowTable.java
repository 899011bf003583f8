import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * A table from Python, as an Arrow IPC stream of one batch. The caller must close the table; rows
 * that were read before stay valid.
 */
class IcebergPyArrowTable {
  private final BufferAllocator allocator;
  private final ArrowStreamReader reader;
  private final VectorSchemaRoot columns;
  final StructType schema;
  /** The number of rows. */
  final int size;
  private IcebergPyArrowTable(BufferAllocator allocator, ArrowStreamReader reader)
      throws IOException {
    this.allocator = allocator;
    this.reader = reader;
    columns = reader.getVectorSchemaRoot();
    schema = ArrowUtils.fromArrowSchema(columns.getSchema());
    size = reader.loadNextBatch() ? columns.getRowCount() : 0;
  }
  static IcebergPyArrowTable of(byte[] stream) {
    BufferAllocator allocator =
        ArrowUtils.rootAllocator().newChildAllocator("iceberg-py", 0, Long.MAX_VALUE);
    ArrowStreamReader reader =
        new ArrowStreamReader(new java.io.ByteArrayInputStream(stream), allocator);
    IcebergPyArrowTable table = null;
    try {
      table = new IcebergPyArrowTable(allocator, reader);
      return table;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } finally {
      if (table == null) close(reader, allocator);
    }
  }
  void close() { close(reader, allocator); }
  private static void close(ArrowStreamReader reader, BufferAllocator allocator) {
    try {
      reader.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } finally {
      allocator.close();
    }
  }

  /** Return the schema of some columns. */
  StructType schemaOf(List names) {
    StructType out = new StructType();
    for (int i = 0; i < names.size(); i++) {
      StructField f = schema.apply((String) names.get(i));
      out = out.add(f.name(), f.dataType(), f.nullable());
    }
    return out;
  }
  private ColumnVector column(String name) {
    return new ArrowColumnVector((FieldVector) columns.getVector(name));
  }
  /** Return some columns as Spark's rows. */
  InternalRow[] rows(List names) {
    ColumnVector[] vectors = new ColumnVector[names.size()];
    for (int i = 0; i < vectors.length; i++) vectors[i] = column((String) names.get(i));
    // the batch owns nothing, because the reader closes the columns
    ColumnarBatch batch = new ColumnarBatch(vectors, size);
    InternalRow[] out = new InternalRow[size];
    for (int i = 0; i < size; i++) out[i] = batch.getRow(i).copy();
    return out;
  }
  String[] texts(String name) {
    ColumnVector column = column(name);
    String[] out = new String[size];
    for (int i = 0; i < size; i++) out[i] = column.getUTF8String(i).toString();
    return out;
  }
  /** Return two columns of bytes together, null where they are null; null without the columns. */
  byte[][][] pairs(String first, String second) {
    if (columns.getVector(first) == null) return null;
    ColumnVector a = column(first), b = column(second);
    byte[][][] out = new byte[size][][];
    for (int i = 0; i < size; i++)
      out[i] = a.isNullAt(i) ? null : new byte[][] {a.getBinary(i), b.getBinary(i)};
    return out;
  }
  long[] longs(String name) { return column(name).getLongs(0, size); }
  /** Return a column of lists; a list may be null. */
  long[][] longLists(String name) {
    ColumnVector column = column(name);
    long[][] out = new long[size][];
    for (int i = 0; i < size; i++)
      out[i] = column.isNullAt(i) ? null : column.getArray(i).toLongArray();
    return out;
  }
}
