import org.apache.hadoop.mapreduce.Job;
import org.apache.parquet.hadoop.ParquetOutputFormat;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructType;

/** Spark's Parquet format, whose files have the field ids of the write's options. */
class IcebergPyParquetFormat extends ParquetFileFormat {
  public OutputWriterFactory prepareWrite(org.apache.spark.sql.SparkSession session, Job job,
      scala.collection.immutable.Map options, StructType columns) {
    IcebergPyExecutorJars.send(
        (org.apache.spark.sql.classic.SparkSession) session, IcebergPyFieldIds.class);
    OutputWriterFactory writers = super.prepareWrite(session, job, options, columns);
    ParquetOutputFormat.setWriteSupportClass(job, IcebergPyFieldIds.class);
    return writers;
  }
}
