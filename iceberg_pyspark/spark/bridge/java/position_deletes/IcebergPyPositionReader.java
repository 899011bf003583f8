import java.io.IOException;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.ParquetReadOptions;
import org.apache.parquet.column.ColumnReader;
import org.apache.parquet.column.impl.ColumnReadStoreImpl;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.filter2.compat.FilterCompat;
import org.apache.parquet.filter2.predicate.FilterApi;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.Type;

/** Reads all of a position delete file, or the rows of one data file, with Parquet's reader. */
class IcebergPyPositionReader implements Callable {
  private static final int AT_ONCE = 1 << 12;
  /** The number of positions between two measurements of the memory. */
  private static final int UNMEASURED = 1 << 18;
  private final Configuration conf;
  private final String location;
  private final String only;
  private final boolean verify;
  private final String place;
  private final IcebergPyPositionFile file = new IcebergPyPositionFile();
  private final int[] positions = new int[AT_ONCE];
  private int count = 0;
  private int key = 0;
  private IcebergPyDeletedRows rows = null;
  private long unmeasured = 0;
  /** If `only` is null, the deletes of all data files are read. */
  IcebergPyPositionReader(
      Configuration conf, String table, String location, String only, boolean verify) {
    this.conf = conf;
    this.location = location;
    this.only = only;
    this.verify = verify;
    place = "table " + table + ": position delete file " + location;
  }

  public Object call() {
    try {
      read();
      return file;
    } catch (IOException e) {
      throw IcebergPyReadFailure.unreadable(place + ": cannot be read: " + e, e);
    } catch (RuntimeException e) {
      if (IcebergPyReadFailure.isNamed(e)) throw e;
      throw IcebergPyReadFailure.unreadable(place + ": is damaged or cannot be read: " + e, e);
    }
  }

  private void read() throws IOException {
    HadoopInputFile input = HadoopInputFile.fromPath(new Path(location), conf);
    ParquetFileReader in = ParquetFileReader.open(input, options(null));
    try {
      MessageType schema = in.getFileMetaData().getSchema();
      IcebergPyPositionColumns columns = new IcebergPyPositionColumns(schema, place);
      // a filter names a column by its path, in which dots separate names
      boolean filters = only != null && columns.path.getName().indexOf('.') < 0;
      if (filters) {
        in.close();
        in = ParquetFileReader.open(input, options(columns.path.getName()));
      }
      MessageType projection =
          new MessageType(schema.getName(), new Type[] {columns.path, columns.position});
      in.setRequestedSchema(projection);
      String writer = in.getFileMetaData().getCreatedBy();
      while (!file.isTooLarge) {
        PageReadStore pages = filters ? in.readNextFilteredRowGroup() : in.readNextRowGroup();
        if (pages == null) break;
        ColumnReadStoreImpl store =
            new ColumnReadStoreImpl(pages, new IcebergPyEmptyConverters(), projection, writer);
        add(pages.getRowCount(), columns,
            store.getColumnReader(
                projection.getColumnDescription(new String[] {columns.path.getName()})),
            store.getColumnReader(
                projection.getColumnDescription(new String[] {columns.position.getName()})));
      }
      flush();
    } finally {
      in.close();
    }
    if (!file.isTooLarge) file.measure(IcebergPyDeleteCache.MAX_BYTES / 2);
  }
  private ParquetReadOptions options(String pathColumn) {
    ParquetReadOptions.Builder options = HadoopReadOptions.builder(conf, new Path(location));
    options.usePageChecksumVerification(verify);
    if (pathColumn != null)
      options.withRecordFilter(FilterCompat.get(
          FilterApi.eq(FilterApi.binaryColumn(pathColumn), Binary.fromString(only))));
    return options.build();
  }

  /** Add the rows of a row group, or what the filter left of it. */
  private void add(
      long all, IcebergPyPositionColumns columns, ColumnReader paths, ColumnReader numbers) {
    if (paths.getTotalValueCount() < all || numbers.getTotalValueCount() < all)
      throw IcebergPyReadFailure.invalid(place + ": a column is shorter than its row group");
    int withPath = paths.getDescriptor().getMaxDefinitionLevel();
    int withNumber = numbers.getDescriptor().getMaxDefinitionLevel();
    // equal paths from a dictionary are the same object
    Binary last = null, lastPath = null;
    for (long i = 0; i < all && !file.isTooLarge; i++) {
      if (paths.getCurrentDefinitionLevel() < withPath
          || numbers.getCurrentDefinitionLevel() < withNumber)
        throw IcebergPyReadFailure.invalid(place + ": a row has no "
            + (paths.getCurrentDefinitionLevel() < withPath ? "file_path" : "pos")
            + ", which every row must have");
      Binary path = paths.getBinary();
      if (path != last && !path.equals(lastPath)) {
        flush();
        lastPath = Binary.fromConstantByteArray(path.getBytes());
        rows = rowsOf(lastPath);
      }
      last = path;
      add(columns.isLong ? numbers.getLong() : numbers.getInteger());
      paths.consume();
      numbers.consume();
    }
  }
  private IcebergPyDeletedRows rowsOf(Binary path) {
    String text = path.toStringUsingUTF8();
    if (!Binary.fromString(text).equals(path))
      throw IcebergPyReadFailure.invalid(place + ": the file_path " + text + " is not UTF-8");
    return only == null || only.equals(text) ? file.rowsToExtend(text) : null;
  }
  private void add(long position) {
    if (position < 0)
      throw IcebergPyReadFailure.invalid(place + ": position " + position + " is negative");
    if (rows == null) return;
    int above = (int) (position >>> 32);
    if (above != key || count == AT_ONCE) {
      flush();
      key = above;
    }
    positions[count++] = (int) position;
  }
  private void flush() {
    if (count > 0) rows.of(key).addN(positions, 0, count);
    unmeasured += count;
    count = 0;
    if (unmeasured < UNMEASURED) return;
    unmeasured = 0;
    file.measure(IcebergPyDeleteCache.MAX_BYTES / 2);
  }
}
