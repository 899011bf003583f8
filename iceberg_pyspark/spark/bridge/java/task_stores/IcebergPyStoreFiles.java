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
 * A file system of Hadoop by another scheme: `gs-<digest>://bucket/file` is `gs://bucket/file`.
 * Hadoop keeps one open file system for each scheme and bucket, and most accept their own scheme
 * alone. Without a scheme for each set of options each file would open a file system, with its
 * client and threads. Executors load the subclasses by the setting `fs.<scheme>.impl`.
 */
public abstract class IcebergPyStoreFiles extends FileSystem {
  private static final String SCHEME = "fs.iceberg-py.scheme", PLACE = "fs.iceberg-py.place";
  private URI uri;
  private String scheme;
  private FileSystem store;

  /** Return the file system for a store's own scheme, not initialized. */
  protected abstract FileSystem newStore(String scheme, Configuration settings);

  /** Return the credentials of the store that this class opened with these settings. */
  static IcebergPyRenewedOptions credentials(Configuration settings, String option) {
    return new IcebergPyRenewedOptions(
        settings.get(SCHEME), settings.get(PLACE), settings, new String[] {option});
  }

  public void initialize(URI name, Configuration settings) throws IOException {
    super.initialize(name, settings);
    uri = URI.create(name.getScheme() + "://" + name.getAuthority());
    scheme = name.getScheme().substring(0, name.getScheme().indexOf('-'));
    Configuration own = new Configuration(settings);
    // executors with the store's classes on their class path find our classes by this loader
    own.setClassLoader(IcebergPyStoreFiles.class.getClassLoader());
    own.set(SCHEME, name.getScheme());
    own.set(PLACE, scheme + "://" + name.getAuthority());
    store = newStore(scheme, own);
    store.initialize(URI.create(own.get(PLACE)), own);
  }
  public URI getUri() { return uri; }
  public String getScheme() { return uri.getScheme(); }
  public void close() throws IOException {
    super.close();
    if (store != null) store.close();
  }

  private Path storePath(Path file) {
    return new Path(scheme, uri.getAuthority(), makeQualified(file).toUri().getPath());
  }
  private FileStatus ownStatus(FileStatus status) {
    String path = status.getPath().toUri().getPath();
    return new FileStatus(status.getLen(), status.isDirectory(), status.getReplication(),
        status.getBlockSize(), status.getModificationTime(),
        new Path(uri.getScheme(), uri.getAuthority(), path.isEmpty() ? "/" : path));
  }

  public FSDataInputStream open(Path file, int bufferSize) throws IOException {
    return store.open(storePath(file), bufferSize);
  }
  public FSDataOutputStream create(Path file, FsPermission permission, boolean overwrite,
      int bufferSize, short replication, long blockSize, Progressable progress) throws IOException {
    return store.create(
        storePath(file), permission, overwrite, bufferSize, replication, blockSize, progress);
  }
  public FSDataOutputStream append(Path file, int bufferSize, Progressable progress)
      throws IOException {
    return store.append(storePath(file), bufferSize, progress);
  }
  public boolean rename(Path from, Path to) throws IOException {
    return store.rename(storePath(from), storePath(to));
  }
  public boolean delete(Path file, boolean recursive) throws IOException {
    return store.delete(storePath(file), recursive);
  }
  public boolean mkdirs(Path folder, FsPermission permission) throws IOException {
    return store.mkdirs(storePath(folder), permission);
  }
  public FileStatus getFileStatus(Path file) throws IOException {
    return ownStatus(store.getFileStatus(storePath(file)));
  }
  public FileStatus[] listStatus(Path folder) throws IOException {
    FileStatus[] statuses = store.listStatus(storePath(folder));
    for (int i = 0; i < statuses.length; i++) statuses[i] = ownStatus(statuses[i]);
    return statuses;
  }
  public long getDefaultBlockSize(Path file) { return store.getDefaultBlockSize(storePath(file)); }

  public Path getWorkingDirectory() { return new Path(uri.toString() + "/"); }
  public void setWorkingDirectory(Path folder) {
    // every path is absolute
  }
}
