import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FutureDataInputStreamBuilder;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;
import org.apache.hadoop.util.functional.FutureIO;

/**
 * Files of an object store whose sizes are in their paths, so that a reader need not query the
 * store for the size of each file that it opens. `s3a-sized://bucket/size=9/folder/file` is the
 * file `s3a://bucket/folder/file` of 9 bytes. Files can only be read.
 */
public class IcebergPySizedFiles extends FileSystem {
  private static final String SCHEME_END = "-sized";
  private static final String SIZE = "/size=";
  private URI uri;
  private FileSystem store;

  /** Return whether files with this scheme may have their size in their path. */
  static boolean accepts(String scheme) {
    if (scheme == null) return false;
    return "s3a".equals(scheme) || scheme.startsWith("s3a-") || scheme.startsWith("gs-")
        || scheme.startsWith("abfs-") || scheme.startsWith("abfss-");
  }
  /** Return a file's URI without the part of the scheme that stands for a set of options. */
  static String inStore(String file) {
    int end = file.indexOf("://"), options = file.indexOf('-');
    return options < 0 || end < options ? file : file.substring(0, options) + file.substring(end);
  }
  /** Return the name of Hadoop's option that has this class as its value. */
  static String option(String scheme) { return "fs." + scheme + SCHEME_END + ".impl"; }
  /** Return the URI of a file with its size. */
  static String withSize(String file, long size) {
    int authority = file.indexOf("://"), path = file.indexOf('/', authority + 3);
    return file.substring(0, authority) + SCHEME_END + file.substring(authority, path) + SIZE + size
        + file.substring(path);
  }

  public void initialize(URI name, Configuration conf) throws IOException {
    super.initialize(name, conf);
    uri = URI.create(name.getScheme() + "://" + name.getAuthority());
  }
  public URI getUri() { return uri; }
  /**
   * Return the file system of the files; Hadoop caches it. It is opened late, because Hadoop limits
   * how many file systems are being initialized.
   */
  private synchronized FileSystem store() throws IOException {
    if (store == null)
      store = new Path(plainScheme(), uri.getAuthority(), "/").getFileSystem(getConf());
    return store;
  }
  private String plainScheme() {
    return uri.getScheme().substring(0, uri.getScheme().length() - SCHEME_END.length());
  }

  private static int endOfSize(Path sizedPath) throws IOException {
    String path = sizedPath.toUri().getPath();
    int end = path.startsWith(SIZE) ? path.indexOf('/', SIZE.length()) : -1;
    if (end < 0) throw new FileNotFoundException(sizedPath + " has no size");
    return end;
  }
  private Path plain(Path sizedPath) throws IOException {
    return new Path(plainScheme(), uri.getAuthority(),
        sizedPath.toUri().getPath().substring(endOfSize(sizedPath)));
  }

  /** Return the file without its size, and its size, without a request. */
  public FileStatus getFileStatus(Path sizedPath) throws IOException {
    Path file = plain(sizedPath);
    String settings = store().getConf().get("fs.s3a.encryption.algorithm", "");
    // Objects that clients encrypt are larger than their files.
    if (settings.startsWith("CSE")) return store().getFileStatus(file);
    long size =
        Long.parseLong(sizedPath.toUri().getPath().substring(SIZE.length(), endOfSize(sizedPath)));
    return new FileStatus(size, false, 1, store().getDefaultBlockSize(file), 0L, file);
  }
  /** Open a file by its path here, or by the path that its status has. */
  public FutureDataInputStreamBuilder openFile(Path file) throws IOException {
    return store().openFile(isSized(file) ? plain(file) : file);
  }
  private boolean isSized(Path file) { return uri.getScheme().equals(file.toUri().getScheme()); }
  public FSDataInputStream open(Path file, int bufferSize) throws IOException {
    if (!isSized(file)) return store().open(file, bufferSize);
    Object stream = openFile(file).withFileStatus(getFileStatus(file)).build();
    return (FSDataInputStream) FutureIO.awaitFuture((CompletableFuture) stream);
  }
  public FileStatus[] listStatus(Path sizedPath) throws IOException {
    return new FileStatus[] {getFileStatus(sizedPath)};
  }

  public Path getWorkingDirectory() { return new Path(uri.toString() + "/"); }
  public void setWorkingDirectory(Path folder) {
    // every path is absolute
  }
  public FSDataOutputStream create(Path file, FsPermission permission, boolean overwrite,
      int bufferSize, short replication, long blockSize, Progressable progress) {
    throw readOnly();
  }
  public FSDataOutputStream append(Path file, int bufferSize, Progressable progress) {
    throw readOnly();
  }
  public boolean rename(Path from, Path to) { throw readOnly(); }
  public boolean delete(Path file, boolean recursive) { throw readOnly(); }
  public boolean mkdirs(Path folder, FsPermission permission) { throw readOnly(); }
  private static UnsupportedOperationException readOnly() {
    return new UnsupportedOperationException("files whose sizes are in their paths are only read");
  }
}
