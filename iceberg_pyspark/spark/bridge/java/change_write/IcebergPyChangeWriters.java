import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.CollectionAccumulator;

/** Makes the writers of `IcebergPyChangeFormat` in tasks. */
public class IcebergPyChangeWriters extends OutputWriterFactory {
  private final OutputWriterFactory files;
  private final StructType columns;
  private final CollectionAccumulator touched;
  IcebergPyChangeWriters(
      OutputWriterFactory files, StructType columns, CollectionAccumulator touched) {
    this.files = files;
    this.columns = columns;
    this.touched = touched;
  }

  public String getFileExtension(TaskAttemptContext task) { return files.getFileExtension(task); }
  public OutputWriter newInstance(String path, StructType all, TaskAttemptContext task) {
    return new IcebergPyChangeWriter(files.newInstance(path, columns, task), columns, touched);
  }
}
