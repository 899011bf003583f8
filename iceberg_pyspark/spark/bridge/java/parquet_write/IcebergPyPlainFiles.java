import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Local files without checksums, whose permissions Java sets without a process. */
class IcebergPyPlainFiles extends RawLocalFileSystem {
  public void setPermission(Path path, FsPermission permission) throws IOException {
    try {
      Files.setPosixFilePermissions(
          pathToFile(path).toPath(), PosixFilePermissions.fromString(permission.toString()));
    } catch (UnsupportedOperationException e) {
      // a store without such permissions
      super.setPermission(path, permission);
    } catch (IllegalArgumentException e) {
      // a sticky bit, which Java cannot set
      super.setPermission(path, permission);
    }
  }
}
