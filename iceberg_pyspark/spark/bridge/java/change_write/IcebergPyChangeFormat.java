import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.CollectionAccumulator;

/**
 * Spark's Parquet writer for changed rows: the last three columns are the operation, file and
 * position of `IcebergPyTouchedRows`, which go to an accumulator, and not into files. Spark counts
 * an accumulator of a job's last stage once for each task.
 */
public class IcebergPyChangeFormat extends IcebergPyParquetFormat {
  private final CollectionAccumulator touched;
  IcebergPyChangeFormat(CollectionAccumulator touched) { this.touched = touched; }

  public OutputWriterFactory prepareWrite(org.apache.spark.sql.SparkSession session, Job job,
      scala.collection.immutable.Map options, StructType columns) {
    StructType written = new StructType((StructField[]) java.util.Arrays.copyOf(
        columns.fields(), columns.length() - IcebergPyTouchedRows.COLUMNS));
    return new IcebergPyChangeWriters(
        super.prepareWrite(session, job, options, written), written, touched);
  }

  /** Return the texts of all files, and forget them. */
  java.util.List take() {
    java.util.List texts = new java.util.ArrayList(touched.value());
    touched.reset();
    return texts;
  }
}
