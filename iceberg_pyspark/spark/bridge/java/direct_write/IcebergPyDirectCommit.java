import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.internal.io.FileCommitProtocol;

/**
 * Leaves the files of a write where tasks put them, because a rename in an object store is a copy,
 * and a file is visible there only when it is complete. Each attempt of a task has its own file
 * names, and the successful attempt sends its names with its message; an Iceberg commit adds these
 * files to the table.
 */
public class IcebergPyDirectCommit extends FileCommitProtocol implements Serializable {
  private final String folder;
  private final String write;
  private final IcebergPyDirectNames names;
  private transient List taskFiles;
  private transient List jobFiles;
  private transient int count;
  IcebergPyDirectCommit(String folder, String write, IcebergPyDirectNames names) {
    this.folder = folder;
    this.write = write;
    this.names = names;
  }

  public void setupJob(JobContext job) {
    // folders are created with their files
  }
  public void commitJob(JobContext job, scala.collection.immutable.Seq messages) {
    // Python commits the files that it gets from `files`
  }
  public void abortJob(JobContext job) {
    // Python removes the files of finished tasks
  }

  public void setupTask(TaskAttemptContext task) {
    taskFiles = new ArrayList();
    count = 0;
  }
  public String newTaskTempFile(TaskAttemptContext task, scala.Option parts, String suffix) {
    count++;
    String name = String.format("%05d-%d-%s-%05d.parquet",
        new Object[] {Integer.valueOf(task.getTaskAttemptID().getTaskID().getId()),
            Integer.valueOf(task.getTaskAttemptID().getId()), write, Integer.valueOf(count)});
    String place = names.place(parts.isDefined() ? (String) parts.get() : "", name);
    taskFiles.add(place);
    return folder + "/" + place;
  }
  public String newTaskTempFileAbsPath(TaskAttemptContext task, String where, String suffix) {
    throw new UnsupportedOperationException("no folder has a location of its own");
  }
  public FileCommitProtocol.TaskCommitMessage commitTask(TaskAttemptContext task) {
    return new FileCommitProtocol.TaskCommitMessage(taskFiles);
  }
  /** A failed attempt removes its files, because nothing else knows them. */
  public void abortTask(TaskAttemptContext task) {
    for (int i = 0; i < taskFiles.size(); i++) {
      Path path = new Path(folder + "/" + taskFiles.get(i));
      try {
        path.getFileSystem(task.getConfiguration()).delete(path, false);
      } catch (IOException e) {
        // orphan removal finds the file later, and the task's own failure must be reported
        continue;
      }
    }
  }

  public synchronized void onTaskCommit(FileCommitProtocol.TaskCommitMessage message) {
    if (jobFiles == null) jobFiles = new ArrayList();
    jobFiles.addAll((List) message.obj());
  }
  /** Return the files of successful attempts, relative to the folder, also of a failed job. */
  synchronized List files() { return jobFiles == null ? new ArrayList() : new ArrayList(jobFiles); }
}
