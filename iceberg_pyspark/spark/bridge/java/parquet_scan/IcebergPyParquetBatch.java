import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Planned files as Spark's own tasks: only Spark's classes are sent to executors, which have none
 * of ours but those that know the sizes of files in object stores.
 */
class IcebergPyParquetBatch implements Batch {
  private static final int MAX_THREADS = 16;
  private final IcebergPyParquetScan scan;
  final IcebergPyPlannedFiles files;
  private InputPartition[] tasks;
  IcebergPyParquetBatch(IcebergPyParquetScan scan, IcebergPyPlannedFiles files) {
    this.scan = scan;
    this.files = files;
  }

  public PartitionReaderFactory createReaderFactory() { return scan.readers(); }

  /**
   * Split and pack files as Spark does with its own files, in the order of the plan; if files are
   * grouped, each group separately.
   */
  public synchronized InputPartition[] planInputPartitions() {
    if (tasks == null) tasks = plan();
    return tasks;
  }
  private InputPartition[] plan() {
    org.apache.spark.sql.classic.SparkSession spark = scan.table.session;
    long[] lengths = scan.lengths(files);
    long most = scan.splits.maxSplitBytes(spark, lengths);
    long splitSize =
        scan.splits.isWhole() ? Long.MAX_VALUE : IcebergPySplits.splitSize(most, lengths);
    BlockLocation[][] blocks = blocks(spark);
    Map groups = new LinkedHashMap();
    for (int i = 0; i < files.paths.length; i++) {
      Object key = files.keys == null ? null : files.keys[i];
      if (!groups.containsKey(key)) groups.put(key, new ArrayList());
      addSplits(i, lengths[i], splitSize, blocks[i], (List) groups.get(key));
    }
    List out = new ArrayList();
    Iterator each = groups.entrySet().iterator();
    while (each.hasNext()) {
      Map.Entry group = (Map.Entry) each.next();
      List splits = (List) group.getValue();
      Iterator ofTasks = packTasks(spark, splits, most).iterator();
      while (ofTasks.hasNext()) {
        PartitionedFile[] one =
            IcebergPySizedSplits.toEndOfFile((PartitionedFile[]) ofTasks.next());
        out.add(group.getKey() == null
                ? (Object) new FilePartition(out.size(), one)
                : new IcebergPyKeyedPartition(out.size(), one, (InternalRow) group.getKey()));
      }
    }
    return (InputPartition[]) out.toArray(new InputPartition[0]);
  }

  /**
   * Return the splits of each task. Splits stay in the order of the plan, because neighbours have
   * similar rows, which makes aggregations and shuffles cheaper; but if this takes over a tenth
   * more tasks, the largest splits come first, as in Spark.
   */
  private List packTasks(org.apache.spark.sql.classic.SparkSession spark, List splits, long most) {
    List inOrder = pack(spark, splits, most);
    List bySize = new ArrayList(splits);
    Collections.sort(bySize, new IcebergPySplitOrder());
    List dense = pack(spark, bySize, most);
    return inOrder.size() <= dense.size() + dense.size() / 10 ? inOrder : dense;
  }
  /** Pack splits into tasks like Spark, unless the open cost of a file differs from Spark's. */
  private List pack(org.apache.spark.sql.classic.SparkSession spark, List splits, long most) {
    List out = new ArrayList();
    SQLConf conf = spark.sessionState().conf();
    long cost = scan.splits.openCost(conf);
    if (cost == conf.filesOpenCostInBytes()) {
      scala.collection.Iterator partitions =
          FilePartition.getFilePartitions(spark, IcebergPyBridge.seq(splits), most).iterator();
      while (partitions.hasNext()) out.add(((FilePartition) partitions.next()).files());
      return out;
    }
    List open = new ArrayList();
    long bytes = 0;
    for (int i = 0; i < splits.size(); i++) {
      PartitionedFile split = (PartitionedFile) splits.get(i);
      if (!open.isEmpty() && bytes + split.length() > most) {
        out.add(open.toArray(new PartitionedFile[0]));
        open.clear();
        bytes = 0;
      }
      open.add(split);
      bytes += split.length() + cost;
    }
    if (!open.isEmpty()) out.add(open.toArray(new PartitionedFile[0]));
    return out;
  }

  /** Return the blocks of each file; empty if their locations do not matter. */
  private BlockLocation[][] blocks(org.apache.spark.sql.classic.SparkSession spark) {
    BlockLocation[][] out = new BlockLocation[files.paths.length][];
    Arrays.fill(out, new BlockLocation[0]);
    SQLConf conf = spark.sessionState().conf();
    List local = new ArrayList();
    Configuration hadoop = null;
    for (int i = 0; i < out.length; i++) {
      if (!scan.splits.isLocal(conf, IcebergPySizedSplits.schemeOf(files.paths[i]))) continue;
      if (hadoop == null) hadoop = scan.hadoop();
      local.add(Integer.valueOf(i));
    }
    if (local.isEmpty()) return out;
    Callable[] hosts = new Callable[local.size()];
    for (int i = 0; i < hosts.length; i++) {
      int file = ((Integer) local.get(i)).intValue();
      hosts[i] = new IcebergPyHosts(hadoop, files.paths[file], files.sizes[file]);
    }
    Object[] replies = results(hosts);
    for (int i = 0; i < replies.length; i++)
      out[((Integer) local.get(i)).intValue()] = (BlockLocation[]) replies[i];
    return out;
  }

  /** Return the results of calls of file systems; a few calls run at the same time. */
  static Object[] results(Callable[] calls) {
    Object[] out = new Object[calls.length];
    if (out.length == 0) return out;
    ExecutorService threads = Executors.newFixedThreadPool(Math.min(out.length, MAX_THREADS));
    try {
      Future[] replies = new Future[out.length];
      for (int i = 0; i < out.length; i++) replies[i] = threads.submit(calls[i]);
      for (int i = 0; i < out.length; i++) out[i] = replies[i].get();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while file systems were asked", e);
    } catch (ExecutionException e) {
      throw new IllegalStateException(e);
    } finally {
      threads.shutdownNow();
    }
    return out;
  }

  /**
   * Add splits that together cover the file. They begin at row groups if the manifest has the
   * offsets, as in planning/split_pack.py: a row group joins the split before it if the split stays
   * within `most` bytes.
   */
  private void addSplits(int file, long size, long most, BlockLocation[] blocks, List splits) {
    SparkPath path = IcebergPySizedSplits.pathOf(files.paths[file]);
    long[] offsets = files.splitOffsets[file];
    int next = 1;
    for (long start = 0; start < size;) {
      long end = size - start <= most ? size : start + most;
      if (offsets != null && end < size) {
        boolean isOne = next >= offsets.length || offsets[next] > end;
        while (next < offsets.length && offsets[next] <= end) next++;
        if (!isOne)
          end = offsets[next - 1];
        else
          end = next < offsets.length ? offsets[next++] : size;
      }
      splits.add(IcebergPySizedSplits.split(files.constants[file], path, start, end - start,
          IcebergPyHosts.of(blocks, start, end - start), size,
          files.fileKeys == null ? null : files.fileKeys[file]));
      start = end;
    }
  }

  /** Equal if the scans are equal, whatever runtime filters left: Spark compares the filters. */
  public boolean equals(Object other) {
    return other instanceof IcebergPyParquetBatch
        && ((IcebergPyParquetBatch) other).scan.equals(scan);
  }
  public int hashCode() { return scan.hashCode(); }
}
