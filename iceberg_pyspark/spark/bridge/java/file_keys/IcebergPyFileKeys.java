import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.crypto.DecryptionPropertiesFactory;
import org.apache.parquet.crypto.EncryptionPropertiesFactory;
import org.apache.parquet.crypto.FileDecryptionProperties;
import org.apache.parquet.crypto.FileEncryptionProperties;
import org.apache.parquet.hadoop.api.WriteSupport;

/**
 * The keys of the Parquet files that the tasks of this process read and write, by path. They arrive
 * with the task, in a split or in a commit protocol, and are forgotten with it: only its objects
 * hold them. Executors have the classes of this folder.
 */
public class IcebergPyFileKeys implements DecryptionPropertiesFactory, EncryptionPropertiesFactory {
  private static final Map held = new HashMap();
  private static final ReferenceQueue forgotten = new ReferenceQueue();
  private static final int AAD_BYTES = 16;

  /** Keep a key as long as the returned array is in use; all users of a path share one array. */
  static synchronized byte[][] hold(Path path, byte[][] key) {
    for (Reference gone = forgotten.poll(); gone != null; gone = forgotten.poll())
      held.values().remove(gone);
    String place = path.toUri().getPath();
    byte[][] known = at(place);
    if (known != null && Arrays.deepEquals(known, key)) return known;
    held.put(place, new WeakReference(key, forgotten));
    return key;
  }
  private static byte[][] at(String place) {
    WeakReference reference = (WeakReference) held.get(place);
    return reference == null ? null : (byte[][]) reference.get();
  }
  private static synchronized byte[][] of(Path path) { return at(path.toUri().getPath()); }

  /** Return the key of a file of a split; null for a file that is not encrypted. */
  public FileDecryptionProperties getFileDecryptionProperties(Configuration conf, Path path) {
    byte[][] key = of(path);
    if (key == null) return null;
    FileDecryptionProperties.Builder properties =
        FileDecryptionProperties.builder().withFooterKey(key[0]);
    return (key[1].length == 0 ? properties : properties.withAADPrefix(key[1])).build();
  }

  /**
   * Return a key for a new file: of its name, under the secret of the write into one of its
   * folders. The driver computes the same key. A file without a secret is not written.
   */
  public FileEncryptionProperties getFileEncryptionProperties(
      Configuration conf, Path path, WriteSupport.WriteContext context) {
    for (Path folder = path.getParent(); folder != null; folder = folder.getParent()) {
      byte[][] secret = of(folder);
      if (secret == null) continue;
      int length = secret[1].length;
      return FileEncryptionProperties.builder(derived(secret[0], "key " + path.getName(), length))
          .withAADPrefix(derived(secret[0], "aad " + path.getName(), AAD_BYTES))
          .withoutAADPrefixStorage()
          .build();
    }
    throw new IllegalStateException("no key for " + path + ", a file of an encrypted table");
  }
  private static byte[] derived(byte[] secret, String name, int length) {
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(secret, "HmacSHA256"));
      return Arrays.copyOf(mac.doFinal(name.getBytes(StandardCharsets.UTF_8)), length);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }
}
