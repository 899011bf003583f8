import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.unsafe.Platform;

/**
 * A stream of the rows that a table gets: Python computes the offsets, and `IcebergPyRule` puts
 * Python's plan of each batch into the query.
 */
public class IcebergPyStream
    implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics {
  private final String table, checkpoint, handle;
  /** How the files of a batch are split into tasks. */
  final IcebergPySplits splits;
  /** What determines the plan of the last batch, and that plan: see `IcebergPyBatches`. */
  volatile Object[] planned;
  private Offset initial;
  private String until;

  /** `handle` is that of the catalog's table; null if the options name the table. */
  IcebergPyStream(
      String table, String handle, Map options, IcebergPySplits splits, String checkpoint) {
    this.table = table;
    this.splits = splits;
    this.checkpoint = checkpoint;
    this.handle = IcebergPyRequests
                      .streamOpen(IcebergPyBridge.session(), handle, options,
                          IcebergPyLocationSettings.ofSession())
                      .stream();
  }

  /** Return the first offset, which the checkpoint keeps: without a batch it is nowhere else. */
  public synchronized Offset initialOffset() {
    if (initial == null) initial = new IcebergPyOffset(firstOffset());
    return initial;
  }
  private String firstOffset() {
    try {
      IcebergPyFirstOffset first = new IcebergPyFirstOffset(checkpoint);
      String json = first.read();
      if (json == null) {
        json = IcebergPyRequests.streamBegin(handle).offset();
        first.write(json);
      }
      return json;
    } catch (java.io.IOException e) {
      Platform.throwException(e);
      return null;
    }
  }

  /** The limits are options, which Python knows; a stream that runs once ignores them. */
  public ReadLimit getDefaultReadLimit() { return ReadLimit.maxFiles(Integer.MAX_VALUE); }
  public Offset latestOffset(Offset start, ReadLimit limit) {
    boolean isLimited = !(limit instanceof ReadAllAvailable);
    String end = IcebergPyRequests.streamNext(handle, start.json(), until, isLimited).offset();
    return end == null ? null : new IcebergPyOffset(end);
  }
  public Offset latestOffset() {
    throw new UnsupportedOperationException("Spark calls latestOffset(start, limit)");
  }
  /** Take the newest snapshot, and not what follows the first offset, which may have expired. */
  public void prepareForTriggerAvailableNow() {
    until = IcebergPyRequests.streamEnd(handle).offset();
  }
  public Offset deserializeOffset(String json) { return new IcebergPyOffset(json); }
  public void commit(Offset end) {}
  public void stop() { IcebergPyRequests.streamClose(handle); }

  public Map metrics(Optional latest) {
    Map out = new LinkedHashMap();
    if (!latest.isPresent()) return out;
    IcebergPyStreamBacklog backlog =
        IcebergPyRequests.streamPending(handle, ((Offset) latest.get()).json());
    if (backlog.files() == null) return out;
    out.put("numFilesOutstanding", String.valueOf(backlog.files()));
    out.put("numRowsOutstanding", String.valueOf(backlog.rows()));
    out.put("numBytesOutstanding", String.valueOf(backlog.size()));
    return out;
  }

  /** Return the message that describes a batch to Python. */
  Map batch(Offset start, Offset end) {
    return IcebergPyRequests.streamBatch(handle, start.json(), end.json());
  }
  /** Spark counts the rows of a stream by looking for the scans whose streams equal it. */
  public boolean equals(Object other) {
    return other == this
        || other instanceof IcebergPyBatchFiles && ((IcebergPyBatchFiles) other).stream == this;
  }
  public int hashCode() { return System.identityHashCode(this); }
  public String toString() { return "iceberg-py " + table; }
  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    throw new IllegalStateException("the files of a batch are planned by IcebergPyRule");
  }
  public PartitionReaderFactory createReaderFactory() {
    throw new IllegalStateException("the files of a batch are planned by IcebergPyRule");
  }
}
