import java.lang.ref.SoftReference;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;

/**
 * A cache of deletes that the tasks of an executor share. It keeps the last used deletes up to a
 * number of bytes, and fewer if memory is short. One task reads the deletes of a key, and other
 * tasks wait.
 */
public class IcebergPyDeleteCache {
  /** In bytes; 128 MiB hold some 64 million deleted rows that are not adjacent. */
  public static final long MAX_BYTES = Math.min(128L << 20, Runtime.getRuntime().maxMemory() / 8);
  private static final Map cache = new LinkedHashMap(16, 0.75f, true);
  private static final Map sizes = new HashMap();
  private static final Map readTasks = new HashMap();
  private static long bytes = 0;

  public static IcebergPyCachedDeletes get(Object key, Callable read) {
    while (true) {
      FutureTask readTask = null, ownTask = null;
      synchronized (cache) {
        SoftReference reference = (SoftReference) cache.get(key);
        Object decoded = reference == null ? null : reference.get();
        if (decoded != null) return (IcebergPyCachedDeletes) decoded;
        readTask = (FutureTask) readTasks.get(key);
        if (readTask == null) {
          readTask = ownTask = new FutureTask(read);
          readTasks.put(key, ownTask);
        }
      }
      if (ownTask != null) ownTask.run();
      IcebergPyCachedDeletes decoded = null;
      Throwable failure = null;
      try {
        decoded = (IcebergPyCachedDeletes) readTask.get();
      } catch (ExecutionException e) {
        failure = e.getCause();
      } catch (InterruptedException e) {
        failure = e;
      } finally {
        if (ownTask != null) finish(key, decoded);
      }
      if (decoded != null) return decoded;
      // the task that read may have been killed, so another task reads for itself
      if (ownTask != null || failure instanceof InterruptedException)
        org.apache.spark.unsafe.Platform.throwException(failure);
    }
  }

  private static void finish(Object key, IcebergPyCachedDeletes deletes) {
    synchronized (cache) {
      readTasks.remove(key);
      if (deletes == null || deletes.bytes > MAX_BYTES) return;
      Long before = (Long) sizes.put(key, Long.valueOf(deletes.bytes));
      bytes += deletes.bytes - (before == null ? 0 : before.longValue());
      cache.put(key, new SoftReference(deletes));
      Iterator oldest = cache.keySet().iterator();
      while (bytes > MAX_BYTES) {
        bytes -= ((Long) sizes.remove(oldest.next())).longValue();
        oldest.remove();
      }
    }
  }
}
