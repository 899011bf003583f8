import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.internal.io.FileCommitProtocol;

/**
 * Files of one write that stay where tasks put them: a rename in an object store is a copy, and a
 * file is seen there once it is whole. Each attempt of a task has names of its own, and those of
 * the attempt that counts come with its message; a commit of Iceberg's makes them part of a table.
 * Executors have this class and `IcebergPyDirectNames`, and no other of ours.
 */
public class IcebergPyDirectCommit extends FileCommitProtocol implements Serializable {
  private final String folder;
  private final String write;
  private final IcebergPyDirectNames names;
  private transient List ofTask;
  private transient List ofJob;
  private transient int count;
  IcebergPyDirectCommit(String folder, String write, IcebergPyDirectNames names) {
    this.folder = folder;
    this.write = write;
    this.names = names;
  }

  public void setupJob(JobContext job) {
    // folders come with files
  }
  public void commitJob(JobContext job, scala.collection.immutable.Seq messages) {
    // what is committed are the files that Python asks for
  }
  public void abortJob(JobContext job) {
    // Python removes the files of finished tasks
  }

  public void setupTask(TaskAttemptContext task) {
    ofTask = new ArrayList();
    count = 0;
  }
  public String newTaskTempFile(TaskAttemptContext task, scala.Option parts, String suffix) {
    count++;
    String name = String.format("%05d-%d-%s-%05d.parquet",
        new Object[] {Integer.valueOf(task.getTaskAttemptID().getTaskID().getId()),
            Integer.valueOf(task.getTaskAttemptID().getId()), write, Integer.valueOf(count)});
    String place = names.place(parts.isDefined() ? (String) parts.get() : "", name);
    ofTask.add(place);
    return folder + "/" + place;
  }
  public String newTaskTempFileAbsPath(TaskAttemptContext task, String where, String suffix) {
    throw new UnsupportedOperationException("no folder has a location of its own");
  }
  public FileCommitProtocol.TaskCommitMessage commitTask(TaskAttemptContext task) {
    return new FileCommitProtocol.TaskCommitMessage(ofTask);
  }
  /** An attempt that fails removes what it has written; nobody knows of it. */
  public void abortTask(TaskAttemptContext task) {
    for (int i = 0; i < ofTask.size(); i++) {
      Path path = new Path(folder + "/" + ofTask.get(i));
      try {
        path.getFileSystem(task.getConfiguration()).delete(path, false);
      } catch (IOException e) {
        // it is for orphan removal to find, and the task's own failure is the one to report
        continue;
      }
    }
  }

  public synchronized void onTaskCommit(FileCommitProtocol.TaskCommitMessage message) {
    if (ofJob == null) ofJob = new ArrayList();
    ofJob.addAll((List) message.obj());
  }
  /** The files of the attempts that count, below the folder; also of a job that has failed. */
  synchronized List files() { return ofJob == null ? new ArrayList() : new ArrayList(ofJob); }
}
