import java.io.IOException;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.util.SerializableConfiguration;

/** A scan of ORC files. */
public class IcebergPyOrcScan extends IcebergPyParquetScan {
  IcebergPyOrcScan(IcebergPyOrcFiles table, org.apache.spark.sql.sources.Filter[] filters,
      Map scanDefinition, IcebergPySplits splits, Map statistics) {
    super(table, filters, scanDefinition, splits, statistics);
  }

  /** Create the readers of Spark's own ORC scan, with case-sensitive column names. */
  PartitionReaderFactory newReaders() {
    SQLConf conf = table.session.sessionState().conf().clone();
    conf.setConfString("spark.sql.caseSensitive", "true");
    if (rowsOfBatch() < conf.orcVectorizedReaderBatchSize())
      conf.setConfString("spark.sql.orc.columnarReaderBatchSize", String.valueOf(rowsOfBatch()));
    Broadcast broadcast = new JavaSparkContext(table.session.sparkContext())
                              .broadcast(new SerializableConfiguration(settingsOfTasks()));
    return (PartitionReaderFactory) IcebergPyFileInternals.orcReaders(conf, broadcast,
        table.columns, table.files.constantSchema, filters, IcebergPyReaderSettings.ofOrc());
  }

  /**
   * Get the lengths from the file system: no manifest entry has the positions of stripes, and
   * stripes beyond a recorded size that is too small would be left out. Spark reads an empty file
   * as a file without rows, so an empty file is an error.
   */
  long[] lengths(IcebergPyPlannedFiles files) {
    Configuration hadoop = hadoop();
    Callable[] lengths = new Callable[files.paths.length];
    for (int i = 0; i < lengths.length; i++)
      lengths[i] = new IcebergPyFileLength(hadoop, files.paths[i], files.sizes[i]);
    Object[] results = IcebergPyParquetBatch.results(lengths);
    long[] out = new long[results.length];
    for (int i = 0; i < out.length; i++) {
      out[i] = ((Long) results[i]).longValue();
      if (out[i] == 0)
        Platform.throwException(new IOException("the data file " + files.paths[i] + " of table "
            + table.table + " is empty, and no ORC file is; restore it"));
    }
    return out;
  }
}
