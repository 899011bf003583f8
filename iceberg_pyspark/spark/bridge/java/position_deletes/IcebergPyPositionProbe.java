import java.util.Map;
import java.util.function.LongBinaryOperator;
import org.apache.spark.broadcast.Broadcast;

/** Returns 1 if a row is deleted, else 0, by the number of its file and its position there. */
class IcebergPyPositionProbe implements LongBinaryOperator {
  private final Map places;
  private long file = -1;
  private IcebergPyDeletedCursor deleted = null;
  /** `broadcast` was created by `IcebergPyDeleteConditions`. */
  IcebergPyPositionProbe(Object broadcast) { places = (Map) ((Broadcast) broadcast).value(); }

  public long applyAsLong(long ordinal, long position) {
    if (ordinal != file) {
      deleted =
          new IcebergPyDeletedCursor(new IcebergPyPositionsOfFile(places, (int) ordinal).find());
      file = ordinal;
    }
    return deleted.isDeleted(position) ? 1 : 0;
  }
}
