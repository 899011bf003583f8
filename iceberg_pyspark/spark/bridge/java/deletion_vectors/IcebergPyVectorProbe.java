import java.util.Arrays;
import java.util.Map;
import java.util.function.LongBinaryOperator;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;

/** Whether a row is deleted: 1 or 0 by the number of its file and its position there. */
class IcebergPyVectorProbe implements LongBinaryOperator {
  private final Map said;
  private final long[] sizes;
  private long file = -1;
  private IcebergPyDeletionVector vector = null;
  /** The broadcast is one of `IcebergPyDeleteConditions`. */
  IcebergPyVectorProbe(Object broadcast) {
    said = (Map) ((Broadcast) broadcast).value();
    sizes = (long[]) said.get("sizes");
  }

  public long applyAsLong(long ordinal, long position) {
    if (ordinal != file) {
      vector = sizes[(int) ordinal] == 0 ? null : read((int) ordinal);
      file = ordinal;
    }
    return vector != null && vector.contains(position) ? 1 : 0;
  }

  private IcebergPyDeletionVector read(int i) {
    int place = (int) ((long[]) said.get("places"))[i];
    String location = ((String[]) said.get("locations"))[place];
    long offset = ((long[]) said.get("offsets"))[i];
    long cardinality = ((long[]) said.get("cardinalities"))[i];
    IcebergPyVectorRead read =
        new IcebergPyVectorRead(((SerializableConfiguration) said.get("conf")).value(),
            (String) said.get("table"), location, offset, (int) sizes[i], cardinality);
    if (!((boolean[]) said.get("lasting"))[place]) return (IcebergPyDeletionVector) read.call();
    Object key = Arrays.asList(new Object[] {said.get("store"), location, Long.valueOf(offset),
        Long.valueOf(sizes[i]), Long.valueOf(cardinality)});
    return (IcebergPyDeletionVector) IcebergPyHeldDeletes.get(key, read);
  }
}
