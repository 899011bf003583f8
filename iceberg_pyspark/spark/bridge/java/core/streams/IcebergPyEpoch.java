import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.PlanLater;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec;
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2;
import org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite;

/**
 * Writes one batch of a stream by a request to Python. Spark prepares the plan below it, because
 * its stateful operators must read and write the state of this batch, and no other.
 */
public class IcebergPyEpoch extends V2CommandExec {
  private final IcebergPyStreamingWrite write;
  private final Long epoch;
  private final SparkPlan query;
  public IcebergPyEpoch(IcebergPyStreamingWrite write, Long epoch, SparkPlan query) {
    super();
    this.write = write;
    this.epoch = epoch;
    this.query = query;
  }
  /** Return the command of a batch that Spark is about to plan; null for any other plan. */
  static SparkPlan of(LogicalPlan plan) {
    if (!(plan instanceof WriteToDataSourceV2)) return null;
    Object batch = ((WriteToDataSourceV2) plan).batchWrite();
    if (!(batch instanceof MicroBatchWrite)) return null;
    Object write = ((MicroBatchWrite) batch).writeSupport();
    if (!(write instanceof IcebergPyStreamingWrite)) return null;
    return new IcebergPyEpoch((IcebergPyStreamingWrite) write, IcebergPyInternals.epochOf(batch),
        new PlanLater((LogicalPlan) (Object) ((WriteToDataSourceV2) plan).query()));
  }

  public scala.collection.immutable.Seq run() {
    org.apache.spark.sql.classic.SparkSession spark = IcebergPySessions.active();
    Object rows = spark.internalCreateDataFrame(query.execute(), query.schema(), false);
    Map options = new HashMap(write.info.options().asCaseSensitiveMap());
    // Spark's own options of the query
    String[] names = (String[]) options.keySet().toArray(new String[0]);
    for (int i = 0; i < names.length; i++)
      if (names[i].equalsIgnoreCase("checkpointLocation") || names[i].equalsIgnoreCase("path"))
        options.remove(names[i]);
    String queryId = write.info.queryId();
    IcebergPyRequests.epochWrite(IcebergPyBridge.session(), write.table.handleToWrite(), queryId,
        epoch.longValue(), IcebergPyInternals.outputMode(spark, queryId), hasState(query), options,
        IcebergPyCommand.environment(), rows);
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

  private List only() { return IcebergPyBridge.list(new Object[] {query}); }
  public scala.collection.immutable.Seq children() { return IcebergPyBridge.seq(only()); }
  public TreeNode withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return new IcebergPyEpoch(write, epoch, (SparkPlan) children.apply(0));
  }
  public scala.collection.immutable.Seq output() { return IcebergPyBridge.seq(new ArrayList()); }
  public String nodeName() { return "IcebergPyEpoch"; }
  public int productArity() { return 3; }
  public Object productElement(int n) {
    return n == 0 ? (Object) write : n == 1 ? (Object) epoch : (Object) query;
  }
  public boolean canEqual(Object other) { return other instanceof IcebergPyEpoch; }
  public boolean equals(Object other) { return this == other; }
  public int hashCode() { return System.identityHashCode(this); }
}
