import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Chosen files as tasks of Spark's own: its classes alone travel to executors, which know none of
 * ours.
 */
class IcebergPyParquetBatch implements Batch {
  private final IcebergPyParquetScan scan;
  final IcebergPyPlannedFiles files;
  private InputPartition[] tasks;
  IcebergPyParquetBatch(IcebergPyParquetScan scan, IcebergPyPlannedFiles files) {
    this.scan = scan;
    this.files = files;
  }

  public PartitionReaderFactory createReaderFactory() { return scan.readers(); }

  /**
   * Cut and packed as Spark does it for files of its own, the largest pieces first; where files
   * are grouped, those of each group by themselves.
   */
  public synchronized InputPartition[] planInputPartitions() {
    if (tasks == null) tasks = packed();
    return tasks;
  }
  private InputPartition[] packed() {
    org.apache.spark.sql.classic.SparkSession spark = scan.table.session;
    long most = mostBytes(spark);
    Map groups = new LinkedHashMap();
    for (int i = 0; i < files.paths.length; i++) {
      Object key = files.keys == null ? null : files.keys[i];
      if (!groups.containsKey(key)) groups.put(key, new ArrayList());
      addPieces(i, most, (List) groups.get(key));
    }
    List out = new ArrayList();
    Iterator each = groups.entrySet().iterator();
    while (each.hasNext()) {
      Map.Entry group = (Map.Entry) each.next();
      List pieces = (List) group.getValue();
      Collections.sort(pieces, new IcebergPyLargestFirst());
      scala.collection.Iterator packed =
          FilePartition.getFilePartitions(spark, IcebergPyBridge.seq(pieces), most).iterator();
      while (packed.hasNext()) {
        FilePartition one = (FilePartition) packed.next();
        out.add(group.getKey() == null ? (Object) new FilePartition(out.size(), one.files())
                                       : new IcebergPyKeyedPartition(out.size(), one.files(),
                                             (InternalRow) group.getKey()));
      }
    }
    return (InputPartition[]) out.toArray(new InputPartition[0]);
  }

  /** What a task reads at most: as much as keeps all cores busy. */
  private long mostBytes(org.apache.spark.sql.classic.SparkSession spark) {
    SQLConf conf = spark.sessionState().conf();
    long total = 0;
    for (int i = 0; i < files.sizes.length; i++)
      total += files.sizes[i] + conf.filesOpenCostInBytes();
    scala.Option least = conf.filesMinPartitionNum();
    int tasks =
        least.isDefined() ? ((Integer) least.get()).intValue() : spark.leafNodeDefaultParallelism();
    return Math.min(
        conf.filesMaxPartitionBytes(), Math.max(conf.filesOpenCostInBytes(), total / tasks));
  }

  private void addPieces(int file, long most, List pieces) {
    // by way of Hadoop's path, which knows what of a location is to be escaped
    SparkPath path = SparkPath.fromPath(new Path(files.paths[file]));
    long size = files.sizes[file];
    for (long start = 0; start < size; start += most)
      pieces.add(new PartitionedFile(files.facts[file], path, start, Math.min(most, size - start),
          new String[0], 0L, size, scala.collection.immutable.Map$.MODULE$.empty()));
  }

  /** As its scan, whatever files run-time filters left: Spark compares those filters itself. */
  public boolean equals(Object other) {
    return other instanceof IcebergPyParquetBatch
        && ((IcebergPyParquetBatch) other).scan.equals(scan);
  }
  public int hashCode() { return scan.hashCode(); }
}
