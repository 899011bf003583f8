import com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem;
import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * Google's connector by another scheme: `gs-<digest>://bucket/file` is the file `gs://bucket/file`.
 * Hadoop keeps one open file system for each scheme and bucket, and the connector accepts `gs`
 * alone. Without a scheme for each set of options each file would open a connector, whose threads
 * stay. Executors load this class by the setting `fs.<scheme>.impl`.
 */
public class IcebergPyGoogleFiles extends FileSystem {
  private URI uri;
  private FileSystem store;

  public void initialize(URI name, Configuration settings) throws IOException {
    super.initialize(name, settings);
    uri = URI.create(name.getScheme() + "://" + name.getAuthority());
    Configuration own = new Configuration(settings);
    // executors with the connector on their class path find our class of tokens by this loader
    own.setClassLoader(IcebergPyGoogleFiles.class.getClassLoader());
    store = new GoogleHadoopFileSystem();
    store.initialize(URI.create("gs://" + name.getAuthority()), own);
  }
  public URI getUri() { return uri; }
  public String getScheme() { return uri.getScheme(); }
  public void close() throws IOException {
    super.close();
    if (store != null) store.close();
  }

  private Path there(Path file) {
    return new Path("gs", uri.getAuthority(), makeQualified(file).toUri().getPath());
  }
  private FileStatus here(FileStatus status) {
    String path = status.getPath().toUri().getPath();
    return new FileStatus(status.getLen(), status.isDirectory(), status.getReplication(),
        status.getBlockSize(), status.getModificationTime(),
        new Path(uri.getScheme(), uri.getAuthority(), path.isEmpty() ? "/" : path));
  }

  public FSDataInputStream open(Path file, int bufferSize) throws IOException {
    return store.open(there(file), bufferSize);
  }
  public FSDataOutputStream create(Path file, FsPermission permission, boolean overwrite,
      int bufferSize, short replication, long blockSize, Progressable progress) throws IOException {
    return store.create(
        there(file), permission, overwrite, bufferSize, replication, blockSize, progress);
  }
  public FSDataOutputStream append(Path file, int bufferSize, Progressable progress)
      throws IOException {
    return store.append(there(file), bufferSize, progress);
  }
  public boolean rename(Path from, Path to) throws IOException {
    return store.rename(there(from), there(to));
  }
  public boolean delete(Path file, boolean recursive) throws IOException {
    return store.delete(there(file), recursive);
  }
  public boolean mkdirs(Path folder, FsPermission permission) throws IOException {
    return store.mkdirs(there(folder), permission);
  }
  public FileStatus getFileStatus(Path file) throws IOException {
    return here(store.getFileStatus(there(file)));
  }
  public FileStatus[] listStatus(Path folder) throws IOException {
    FileStatus[] statuses = store.listStatus(there(folder));
    for (int i = 0; i < statuses.length; i++) statuses[i] = here(statuses[i]);
    return statuses;
  }
  public long getDefaultBlockSize(Path file) { return store.getDefaultBlockSize(there(file)); }

  public Path getWorkingDirectory() { return new Path(uri.toString() + "/"); }
  public void setWorkingDirectory(Path folder) {
    // every path is absolute
  }
}
