import org.apache.parquet.io.api.Converter;
import org.apache.parquet.io.api.GroupConverter;

/** For rows whose columns are read separately. */
class IcebergPyEmptyConverters extends GroupConverter {
  public Converter getConverter(int field) { return new IcebergPyEmptyConverter(); }
  public void start() {}
  public void end() {}
}
