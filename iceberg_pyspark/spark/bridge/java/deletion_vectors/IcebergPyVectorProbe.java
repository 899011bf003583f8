import java.util.Arrays;
import java.util.Map;
import java.util.function.LongBinaryOperator;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;

/** Returns 1 if a row is deleted, else 0, by the number of its file and its position there. */
class IcebergPyVectorProbe implements LongBinaryOperator {
  private final Map places;
  private final long[] sizes;
  private long file = -1;
  private IcebergPyDeletedCursor deleted = null;
  /** `broadcast` was created by `IcebergPyDeleteConditions`. */
  IcebergPyVectorProbe(Object broadcast) {
    places = (Map) ((Broadcast) broadcast).value();
    sizes = (long[]) places.get("sizes");
  }

  public long applyAsLong(long ordinal, long position) {
    if (ordinal != file) {
      deleted = sizes[(int) ordinal] == 0 ? null : new IcebergPyDeletedCursor(read((int) ordinal));
      file = ordinal;
    }
    return deleted != null && deleted.isDeleted(position) ? 1 : 0;
  }

  private IcebergPyDeletionVector read(int i) {
    int place = (int) ((long[]) places.get("places"))[i];
    String location = ((String[]) places.get("locations"))[place];
    long offset = ((long[]) places.get("offsets"))[i];
    long cardinality = ((long[]) places.get("cardinalities"))[i];
    IcebergPyVectorReader read =
        new IcebergPyVectorReader(((SerializableConfiguration) places.get("conf")).value(),
            (String) places.get("table"), location, offset, (int) sizes[i], cardinality);
    if (!((boolean[]) places.get("lasting"))[place]) return (IcebergPyDeletionVector) read.call();
    Object key = Arrays.asList(new Object[] {places.get("store"), location, Long.valueOf(offset),
        Long.valueOf(sizes[i]), Long.valueOf(cardinality)});
    return (IcebergPyDeletionVector) IcebergPyDeleteCache.get(key, read);
  }
}
