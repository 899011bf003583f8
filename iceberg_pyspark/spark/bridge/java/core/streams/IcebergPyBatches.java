import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import org.apache.spark.sql.types.StructType;

/** Replaces one batch of a stream by Python's plan of the batch. */
class IcebergPyBatches {
  static boolean isOurs(LogicalPlan plan) {
    if (!(plan instanceof StreamingDataSourceV2ScanRelation)) return false;
    StreamingDataSourceV2ScanRelation relation = (StreamingDataSourceV2ScanRelation) plan;
    return relation.stream() instanceof IcebergPyStream && relation.endOffset().isDefined();
  }

  /** Return the plan of the rows that fulfil the condition; arguments as in `IcebergPyRule`. */
  static LogicalPlan plan(LogicalPlan relation, Expression condition, Set requiredIds) {
    StreamingDataSourceV2ScanRelation streaming = (StreamingDataSourceV2ScanRelation) relation;
    IcebergPyStream stream = (IcebergPyStream) streaming.stream();
    Map batch =
        stream.batch((Offset) streaming.startOffset().get(), (Offset) streaming.endOffset().get());
    Map definition = IcebergPyRule.scanDefinition(relation, IcebergPyRule.scannedTable(null, null),
        IcebergPyScanParts.conjuncts(condition), requiredIds, null, false, batch);
    // Spark plans a batch to run it, and again for each text of the plan that its UI shows
    List key =
        IcebergPyBridge.list(new Object[] {relation.output(), definition, condition, requiredIds});
    Object[] last = stream.planned;
    if (last == null || !key.equals(last[0])) {
      last = new Object[] {key, plan(streaming, condition, requiredIds, definition)};
      stream.planned = last;
    }
    return (LogicalPlan) last[1];
  }
  private static LogicalPlan plan(StreamingDataSourceV2ScanRelation streaming, Expression condition,
      Set requiredIds, Map definition) {
    LogicalPlan relation = (LogicalPlan) (Object) streaming;
    IcebergPyPlannedScan planned = IcebergPyRequests.scanPlan(definition);
    List branches = IcebergPyRule.branches(
        planned, relation, condition, requiredIds, definition, new ArrayList(), null);
    long pythonsRows = 0;
    boolean hasFiles = false;
    for (int i = 0; i < branches.size(); i++) {
      LogicalPlan rows = (LogicalPlan) ((List) planned.parts().get(i)).get(0);
      if (IcebergPyScanParts.isScanned(rows))
        hasFiles = true;
      else
        pythonsRows += rowsOf(rows);
    }
    if (!hasFiles || pythonsRows > 0)
      branches.add(noFiles(streaming, (LogicalPlan) branches.get(0), pythonsRows));
    if (branches.size() == 1) return (LogicalPlan) branches.get(0);
    return new Union(IcebergPyBridge.seq(branches), false, false);
  }
  private static long rowsOf(LogicalPlan plan) {
    long out = 0;
    scala.collection.Iterator leaves = plan.collectLeaves().iterator();
    while (leaves.hasNext()) {
      scala.Option rows = ((LogicalPlan) leaves.next()).stats().rowCount();
      if (rows.isDefined()) out += ((scala.math.BigInt) rows.get()).toLong();
    }
    return out;
  }

  private static LogicalPlan noFiles(
      StreamingDataSourceV2ScanRelation like, LogicalPlan other, long rows) {
    List output = new ArrayList();
    StructType schema = new StructType();
    scala.collection.Iterator it = other.output().iterator();
    while (it.hasNext()) {
      Attribute a = ((Attribute) it.next()).newInstance();
      output.add(a);
      schema = schema.add(a.name(), a.dataType(), a.nullable());
    }
    return relation(like, new IcebergPyNoFiles(schema, rows), IcebergPyBridge.seq(output), null);
  }

  /** Return the physical plan of a scan of no files; null for any other plan. */
  static SparkPlan pythonsRows(LogicalPlan plan) {
    if (!(plan instanceof StreamingDataSourceV2ScanRelation)) return null;
    StreamingDataSourceV2ScanRelation relation = (StreamingDataSourceV2ScanRelation) plan;
    if (!(relation.scan() instanceof IcebergPyNoFiles)) return null;
    return new IcebergPyPythonsRows(relation.output(), (Scan) relation.scan(),
        (MicroBatchStream) relation.stream(), (Offset) relation.startOffset().get(),
        (Offset) relation.endOffset().get(), scala.Option.empty(), scala.Option.empty());
  }

  /** Return the scan of planned files in the form that a stream has in a plan. */
  static LogicalPlan scan(DataSourceV2Relation files, LogicalPlan like, Map scanDefinition,
      org.apache.spark.sql.sources.Filter[] filters) {
    StreamingDataSourceV2ScanRelation streaming = (StreamingDataSourceV2ScanRelation) like;
    Scan scan = ((IcebergPyFiles) files.table())
                    .scan(filters, scanDefinition, ((IcebergPyStream) streaming.stream()).splits,
                        new HashMap());
    return relation(streaming, scan, files.output(), scan.toBatch());
  }
  private static LogicalPlan relation(StreamingDataSourceV2ScanRelation like, Scan scan,
      scala.collection.immutable.Seq output, org.apache.spark.sql.connector.read.Batch batch) {
    IcebergPyBatchFiles files = new IcebergPyBatchFiles((IcebergPyStream) like.stream(), batch);
    return (LogicalPlan) (Object) new StreamingDataSourceV2ScanRelation(
        like.relation(), scan, output, files, like.startOffset(), like.endOffset());
  }
}
