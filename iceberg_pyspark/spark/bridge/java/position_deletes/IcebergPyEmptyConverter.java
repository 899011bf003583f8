import org.apache.parquet.io.api.PrimitiveConverter;

/** For columns whose values are read one by one. */
class IcebergPyEmptyConverter extends PrimitiveConverter {}
