import org.apache.parquet.io.api.PrimitiveConverter;

/** For columns whose values are asked for one by one. */
class IcebergPyNoConverter extends PrimitiveConverter {}
