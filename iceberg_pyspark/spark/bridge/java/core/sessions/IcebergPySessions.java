import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.classic.SparkSession;

/**
 * The sessions of this JVM, each with a random handle, because Spark's own session id appears in
 * job tags, logs and events. No reference here keeps a session alive.
 */
class IcebergPySessions {
  private static final java.security.SecureRandom RANDOM = new java.security.SecureRandom();
  /** The prefix of all handles of this JVM. */
  static final String JVM = random(8);
  private static final Map HANDLES = new WeakHashMap();
  private static final Map BY_TEXT = new HashMap();

  private static String random(int length) {
    byte[] bytes = new byte[length];
    RANDOM.nextBytes(bytes);
    return java.util.HexFormat.of().formatHex(bytes);
  }

  /** Return the session for which the current thread works. */
  static SparkSession active() { return (SparkSession) SparkSession.active(); }

  static IcebergPySessionHandle handleOf(Object session) {
    synchronized (HANDLES) {
      IcebergPySessionHandle handle = (IcebergPySessionHandle) HANDLES.get(session);
      if (handle == null) {
        handle = new IcebergPySessionHandle(JVM + "-" + random(16));
        HANDLES.put(session, handle);
        BY_TEXT.put(handle.text, new WeakReference(handle));
      }
      return handle;
    }
  }

  /** Return the session of a handle; null if Iceberg was removed or the context is stopped. */
  static Object sessionOf(String text) {
    synchronized (HANDLES) {
      Iterator all = HANDLES.entrySet().iterator();
      while (all.hasNext()) {
        Map.Entry one = (Map.Entry) all.next();
        IcebergPySessionHandle handle = (IcebergPySessionHandle) one.getValue();
        if (!handle.text.equals(text)) continue;
        boolean isUsable = !Boolean.FALSE.equals(handle.installed) && !isStopped(one.getKey());
        return isUsable ? one.getKey() : null;
      }
      return null;
    }
  }

  /** Return the handles that nothing can use any more; each handle is returned once. */
  static List unusableHandles() {
    List unusable = new ArrayList();
    synchronized (HANDLES) {
      Iterator all = HANDLES.entrySet().iterator();
      while (all.hasNext()) {
        Map.Entry one = (Map.Entry) all.next();
        String text = ((IcebergPySessionHandle) one.getValue()).text;
        if (BY_TEXT.containsKey(text) && isStopped(one.getKey())) unusable.add(text);
      }
      Iterator entries = BY_TEXT.entrySet().iterator();
      while (entries.hasNext()) {
        Map.Entry one = (Map.Entry) entries.next();
        if (((WeakReference) one.getValue()).get() == null) unusable.add(one.getKey());
      }
      BY_TEXT.keySet().removeAll(unusable);
    }
    return unusable;
  }

  private static boolean isStopped(Object session) {
    return ((SparkSession) session).sparkContext().isStopped();
  }

  /**
   * Let a session that has not built its state, which takes a third of a second, build it with
   * Iceberg: see `inherit`. Return whether that is so.
   */
  static boolean beginLater(SparkSession session, scala.Function2 parser)
      throws ReflectiveOperationException {
    // Spark builds the state under this lock
    synchronized (session) {
      if (IcebergPyInternals.hasState(session)) return false;
      IcebergPyExtensions.inject(session, parser);
      handleOf(session).installed = Boolean.TRUE;
      return true;
    }
  }
  /** Install Iceberg's planning of our tables in a session. */
  static void begin(SparkSession session) {
    IcebergPySessionHandle handle = handleOf(session);
    synchronized (handle) {
      handle.installed = Boolean.TRUE;
      IcebergPyRedaction.hideIn(session);
      ExperimentalMethods methods = session.experimental();
      if (has(methods)) return;
      methods.extraOptimizations_$eq(
          (scala.collection.immutable.Seq) methods.extraOptimizations().appended(
              new IcebergPyRule()));
      methods.extraStrategies_$eq(
          (scala.collection.immutable.Seq) methods.extraStrategies().appended(
              new IcebergPyStrategy()));
    }
  }
  static void end(SparkSession session) {
    IcebergPySessionHandle handle = handleOf(session);
    synchronized (handle) {
      handle.installed = Boolean.FALSE;
      ExperimentalMethods methods = session.experimental();
      methods.extraOptimizations_$eq(withoutOurs(methods.extraOptimizations()));
      methods.extraStrategies_$eq(withoutOurs(methods.extraStrategies()));
    }
  }
  /**
   * Install Iceberg in a session that builds its state with our extensions, or in a clone of one,
   * unless it was removed.
   */
  static void inherit(SparkSession session) {
    IcebergPySessionHandle handle = handleOf(session);
    synchronized (handle) {
      if (IcebergPyBridge.callback == null || Boolean.FALSE.equals(handle.installed)) return;
      begin(session);
    }
  }
  private static scala.collection.immutable.Seq withoutOurs(scala.collection.immutable.Seq all) {
    List remaining = new ArrayList();
    scala.collection.Iterator it = all.iterator();
    while (it.hasNext()) {
      Object one = it.next();
      if (!(one instanceof IcebergPyRule || one instanceof IcebergPyStrategy)) remaining.add(one);
    }
    return IcebergPyBridge.seq(remaining);
  }

  /** Return whether Iceberg is installed in the session. */
  static boolean isInstalled(SparkSession session) {
    return IcebergPyBridge.callback != null && has(session.experimental());
  }
  private static boolean has(ExperimentalMethods methods) {
    scala.collection.Iterator strategies = methods.extraStrategies().iterator();
    while (strategies.hasNext())
      if (strategies.next() instanceof IcebergPyStrategy) return true;
    return false;
  }

  /** Clear the callback to Python if no session has Iceberg any more; return whether that is so. */
  static boolean clearUnusedCallback() {
    synchronized (HANDLES) {
      Iterator all = HANDLES.entrySet().iterator();
      while (all.hasNext()) {
        Map.Entry one = (Map.Entry) all.next();
        if (Boolean.TRUE.equals(((IcebergPySessionHandle) one.getValue()).installed)
            && !isStopped(one.getKey()))
          return false;
      }
      IcebergPyBridge.callback = null;
      return true;
    }
  }
}
