import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.streaming.StreamingQueryListener;
import org.apache.spark.unsafe.Platform;

/**
 * A table that `toTable` makes. Spark asks for it before it starts the query; it is created when
 * the query has started, so that a query that cannot start leaves none.
 */
class IcebergPyNewSink extends IcebergPyTable {
  /** The table that `toTable` has made and not loaded yet. */
  private static final ThreadLocal MADE = new ThreadLocal();
  private final IcebergPyCatalog catalog;
  private final String catalogHandle;
  private final Identifier identifier;
  private String created;
  private Throwable failure;

  /** `staged` is the table as Python has planned it. */
  IcebergPyNewSink(IcebergPyTableDefinition staged, IcebergPyCatalog catalog, String catalogHandle,
      Identifier identifier) {
    super(staged);
    this.catalog = catalog;
    this.catalogHandle = catalogHandle;
    this.identifier = identifier;
    SparkSession spark = IcebergPySessions.active();
    boolean listens = false;
    StreamingQueryListener[] listeners = spark.streams().listListeners();
    for (int i = 0; i < listeners.length; i++)
      if (listeners[i] instanceof IcebergPyStartListener) listens = true;
    if (!listens) spark.streams().addListener(new IcebergPyStartListener(spark));
    MADE.set(this);
  }
  /** Return the table that the `toTable` which now loads it has made, or null. */
  static IcebergPyNewSink made(IcebergPyCatalog catalog, Identifier identifier) {
    IcebergPyNewSink sink = (IcebergPyNewSink) MADE.get();
    MADE.remove();
    return sink != null && isAsked() && sink.catalog == catalog
            && sink.identifier.equals(identifier)
        ? sink
        : null;
  }
  /** Return whether `toTable` asks, which only the stack of callers shows. */
  static boolean isAsked() {
    StackTraceElement[] callers = Thread.currentThread().getStackTrace();
    for (int i = 0; i < callers.length; i++)
      if (callers[i].getMethodName().equals("toTable")
          && callers[i].getClassName().endsWith(".DataStreamWriter"))
        return true;
    return false;
  }
  /** Create the table, and keep what prevents it for the first batch, which can report it. */
  synchronized void create() {
    try {
      IcebergPyRequests.stagedCommit(catalogHandle, handle);
      created = catalog.handleOf(identifier);
    } catch (Throwable e) {
      failure = e;
    }
  }
  synchronized String handleToWrite() {
    if (created == null && failure == null) create();
    if (failure != null) Platform.throwException(failure);
    return created;
  }
}
