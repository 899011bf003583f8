import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.execution.PlanLater;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.StreamWriterCommitProgress;
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2Exec;
import org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite;

/**
 * Writes one batch of a stream by a request to Python. Spark prepares the plan below it, because
 * its stateful operators must read and write the state of this batch, and no other. In a plan of
 * this class, Spark finds the number of written rows for the progress of a query.
 */
public class IcebergPyEpoch extends IcebergPySinkOfRelease {
  private final IcebergPyStreamingWrite write;
  /** Spark copies a plan by this constructor. */
  public IcebergPyEpoch(BatchWrite batch, SparkPlan query) {
    super(batch, query);
    this.write = (IcebergPyStreamingWrite) ((MicroBatchWrite) batch).writeSupport();
  }
  /** Return the command of a batch that Spark is about to plan; null for any other plan. */
  static SparkPlan of(LogicalPlan plan) {
    if (!(plan instanceof WriteToDataSourceV2)) return null;
    BatchWrite batch = ((WriteToDataSourceV2) plan).batchWrite();
    if (!(batch instanceof MicroBatchWrite)) return null;
    if (!(((MicroBatchWrite) batch).writeSupport() instanceof IcebergPyStreamingWrite)) return null;
    return new IcebergPyEpoch(
        batch, new PlanLater((LogicalPlan) (Object) ((WriteToDataSourceV2) plan).query()));
  }

  public scala.collection.immutable.Seq run() {
    org.apache.spark.sql.classic.SparkSession spark = IcebergPySessions.active();
    Object rows = spark.internalCreateDataFrame(query().execute(), query().schema(), false);
    Map options = new HashMap(write.info.options().asCaseSensitiveMap());
    // Spark's own options of the query
    String[] names = (String[]) options.keySet().toArray(new String[0]);
    for (int i = 0; i < names.length; i++)
      if (names[i].equalsIgnoreCase("checkpointLocation") || names[i].equalsIgnoreCase("path"))
        options.remove(names[i]);
    String queryId = write.info.queryId();
    IcebergPyEpochRows written = IcebergPyRequests.epochWrite(IcebergPyBridge.session(),
        write.table.handleToWrite(), queryId, IcebergPyInternals.epochOf(batchWrite()).longValue(),
        IcebergPyInternals.outputMode(spark, queryId), hasState(query()), options,
        IcebergPyCommand.environment(), rows);
    commitProgress_$eq(scala.Option.apply(new StreamWriterCommitProgress(written.rows())));
    return IcebergPyBridge.seq(new ArrayList());
  }

  /** Return whether Spark must run a batch again for the state or the watermark after it. */
  private static boolean hasState(SparkPlan plan) {
    for (Class c = plan.getClass(); c != null; c = c.getSuperclass()) {
      Class[] interfaces = c.getInterfaces();
      for (int i = 0; i < interfaces.length; i++)
        if (interfaces[i].getSimpleName().equals("StateStoreWriter")) return true;
      if (c.getSimpleName().equals("EventTimeWatermarkExec")) return true;
    }
    scala.collection.Iterator children = plan.children().iterator();
    while (children.hasNext())
      if (hasState((SparkPlan) children.next())) return true;
    return false;
  }

  public WriteToDataSourceV2Exec withNewChildInternal(SparkPlan child) {
    return new IcebergPyEpoch(batchWrite(), child);
  }
  /** Only Spark's own writing would count them. */
  public scala.collection.immutable.Map metrics() {
    return (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty();
  }
  public scala.collection.immutable.Seq output() { return IcebergPyBridge.seq(new ArrayList()); }
  public String nodeName() { return "IcebergPyEpoch"; }
  public int productArity() { return 2; }
  public Object productElement(int n) { return n == 0 ? (Object) batchWrite() : (Object) query(); }
  public boolean canEqual(Object other) { return other instanceof IcebergPyEpoch; }
  public boolean equals(Object other) { return this == other; }
  public int hashCode() { return System.identityHashCode(this); }
}
