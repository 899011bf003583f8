import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.DeduplicateRelations$;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.JoinType$;
import org.apache.spark.sql.catalyst.plans.logical.BROADCAST$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.FileScan;

/** Joins of a table's rows with a source, and what Spark thinks of them beforehand. */
public class IcebergPyJoins {
  /** A source is small beside a table of so many times its rows. */
  private static final long FEW = 4;
  /** What Spark takes a file's name, a position and a key for. */
  private static final long BYTES_OF_A_PLACE = 36;

  /**
   * The equalities that a condition asks for: each a column of the table, its name, and a value of
   * the source, its type.
   */
  public IcebergPyExpressions equiJoinKeys(
      Object session, Object rows, Object source, Object condition) {
    IcebergPyExpressions out = new IcebergPyExpressions();
    List keys = new ArrayList();
    AttributeSet ours = IcebergPyFrames.plan(rows).outputSet();
    LogicalPlan joined = IcebergPyFrames.plan(IcebergPyFrames.frame(session,
        join(IcebergPyFrames.plan(rows), IcebergPyFrames.plan(source), "inner",
            IcebergPyFrames.expression(session, condition), new HintInfo[2])));
    if (joined instanceof Join && ((Join) joined).condition().isDefined())
      addKeys(out, keys, (Expression) ((Join) joined).condition().get(), ours);
    out.describe(keys);
    return out;
  }

  /** Adds the key of each equality that a condition asks for, whichever side has the column. */
  static void addKeys(
      IcebergPyExpressions out, List keys, Expression condition, AttributeSet ours) {
    List all = IcebergPyParts.conjuncts(condition);
    for (int i = 0; i < all.size(); i++) {
      if (!(all.get(i) instanceof EqualTo)) continue;
      Expression left = (Expression) (Object) ((EqualTo) all.get(i)).left(),
                 right = (Expression) (Object) ((EqualTo) all.get(i)).right();
      boolean first = left.references().subsetOf(ours);
      addKey(out, keys, first ? left : right, first ? right : left, ours);
    }
  }

  /**
   * Adds a key: the name of a column of the table, it or what it is cast to, a value that it
   * equals, and the value's type; nothing where it is no column, or the value is not the source's
   * alone.
   */
  static void addKey(
      IcebergPyExpressions out, List keys, Expression column, Expression value, AttributeSet ours) {
    Expression bare =
        column instanceof Cast ? (Expression) (Object) ((Cast) column).child() : column;
    boolean apart = bare instanceof AttributeReference && ours.contains((AttributeReference) bare)
        && value.references().intersect(ours).isEmpty() && !value.references().isEmpty();
    if (!apart || !value.deterministic() || SubqueryExpression$.MODULE$.hasSubquery(value)) return;
    keys.add(
        IcebergPyBridge.arguments(new Object[] {"name", ((AttributeReference) bare).name(), "type",
            value.dataType().json(), "column", out.number(column), "value", out.number(value)}));
  }

  /**
   * The rows of a table of so many records and bytes that have a key of the source's, found by a
   * broadcast of these keys; all rows where Spark would not broadcast them, or little comes of it.
   * An outer join can broadcast one side only, the wrong one: without this the whole table would be
   * shuffled. `described` has the keys: a column of the table and a value of the source each.
   */
  public Object semiJoinOnKeys(Object server, Object session, Object rows, Object source,
      String described, boolean outer, long records, long bytes) {
    long most = ((org.apache.spark.sql.classic.SparkSession) session)
                    .sessionState()
                    .conf()
                    .autoBroadcastJoinThreshold();
    if (bytes <= most || !outer && fits(source, most)) return rows;
    List equal = (List) IcebergPyObjects.read(server, described);
    IcebergPyRowValues values = new IcebergPyRowValues(session, rows, rows, source);
    LogicalPlan once = IcebergPyFrames.plan(source);
    // the same rows under other ids: the source itself is joined with what comes out here
    LogicalPlan twice = (LogicalPlan) ((Rule) DeduplicateRelations$.MODULE$)
                            .apply(join(once, once, "inner", null, new HintInfo[2]));
    LogicalPlan again = (LogicalPlan) (Object) ((Join) twice).right();
    Map ids = new HashMap();
    for (int i = 0; i < once.output().size(); i++)
      ids.put(((Attribute) once.output().apply(i)).exprId(), again.output().apply(i));
    List keys = new ArrayList();
    Expression all = null;
    for (int i = 0; i < equal.size(); i++) {
      List pair = (List) equal.get(i);
      Alias key =
          IcebergPyFrames.alias(IcebergPyRule.substitute(values.of(pair.get(1)), ids), "key" + i);
      Expression here =
          new EqualTo(values.of(pair.get(0)), (Expression) (Object) key.toAttribute());
      keys.add(key);
      all = all == null ? here : new And(all, here);
    }
    Object keysFrame =
        IcebergPyFrames.frame(session, new Project(IcebergPyBridge.seq(keys), again));
    if (!once.outputSet().intersect(again.outputSet()).isEmpty()
        || !fits(keysFrame,
            Math.min(most,
                IcebergPySizes.estimate(records / FEW, IcebergPyFrames.plan(keysFrame).schema()))))
      return rows;
    return IcebergPyFrames.frame(session,
        join(IcebergPyFrames.plan(rows), IcebergPyFrames.plan(keysFrame), "left_semi", all,
            new HintInfo[] {null, new HintInfo(scala.Option.apply(BROADCAST$.MODULE$))}));
  }

  /**
   * Whether a join of so many records of a table with a source comes out in tasks as even as
   * rebalancing would make them: Spark shuffles both sides, and so much of the source that no piece
   * is small and none beyond `most` bytes.
   */
  public boolean needsNoRebalance(
      Object session, Object source, long records, long least, long most) {
    org.apache.spark.sql.classic.SparkSession spark =
        (org.apache.spark.sql.classic.SparkSession) session;
    org.apache.spark.sql.internal.SQLConf conf = spark.sessionState().conf();
    java.math.BigInteger size = ((org.apache.spark.sql.classic.Dataset) source)
                                    .queryExecution()
                                    .optimizedPlan()
                                    .stats()
                                    .sizeInBytes()
                                    .bigInteger();
    long broadcast = conf.autoBroadcastJoinThreshold(),
         tasks = spark.sparkContext().defaultParallelism();
    if (!conf.adaptiveExecutionEnabled() || size.bitLength() > 62
        || records * BYTES_OF_A_PLACE <= broadcast)
      return false;
    return size.longValue() > broadcast && size.longValue() >= tasks * least
        && size.longValue() <= tasks * most;
  }

  /**
   * A join, its condition by the names of both sides; where rows of the table that meet none are
   * kept, a column "__ice_source" that is null for them.
   */
  public Object joined(Object session, Object rows, Object source, Object condition, String kind) {
    LogicalPlan right = IcebergPyFrames.plan(source);
    if (kind.equals("left") || kind.equals("full")) {
      List columns = new ArrayList(scala.jdk.javaapi.CollectionConverters.asJava(right.output()));
      columns.add(
          IcebergPyFrames.alias((Expression) Literal$.MODULE$.apply(Boolean.TRUE), "__ice_source"));
      right = new Project(IcebergPyBridge.seq(columns), right);
    }
    return IcebergPyFrames.frame(session,
        join(IcebergPyFrames.plan(rows), right, kind,
            IcebergPyFrames.expression(session, condition), new HintInfo[2]));
  }

  /**
   * Whether a DataFrame gives the same rows each time, and few bytes of them as far as Spark can
   * tell.
   */
  public boolean fits(Object frame, long most) {
    LogicalPlan plan =
        ((org.apache.spark.sql.classic.Dataset) frame).queryExecution().optimizedPlan();
    if (!plan.deterministic() || isLimited(plan)
        || plan.stats().sizeInBytes().bigInteger().compareTo(java.math.BigInteger.valueOf(most))
            > 0)
      return false;
    scala.collection.Iterator leaves = plan.collectLeaves().iterator();
    while (leaves.hasNext())
      if (!isLasting((LogicalPlan) leaves.next())) return false;
    return true;
  }
  /**
   * Whether Spark joins a DataFrame by the groups that its files are in, and reading it again gives
   * the same rows: no more than one scan, whose groups a cache would hide.
   */
  public boolean comesInGroups(Object frame) {
    LogicalPlan plan = IcebergPyFrames.plan(frame);
    while (plan instanceof Project || plan instanceof Filter || plan instanceof SubqueryAlias
        || plan instanceof View)
      plan = (LogicalPlan) plan.children().head();
    Scan scan = null;
    if (plan instanceof DataSourceV2ScanRelation)
      scan = ((DataSourceV2ScanRelation) plan).scan();
    else if (plan instanceof DataSourceV2Relation
        && ((DataSourceV2Relation) plan).table() instanceof IcebergPyTable)
      scan = ((IcebergPyTable) ((DataSourceV2Relation) plan).table())
                 .newScanBuilder(((DataSourceV2Relation) plan).options())
                 .build();
    return scan instanceof IcebergPyScan
        && ((IcebergPyScan) scan).outputPartitioning() instanceof KeyGroupedPartitioning
        && fits(frame, Long.MAX_VALUE);
  }
  /** Which rows a limit leaves is open, and may be others the next time. */
  private static boolean isLimited(LogicalPlan plan) {
    if (plan instanceof GlobalLimit || plan instanceof LocalLimit) return true;
    scala.collection.Iterator it = plan.children().iterator();
    while (it.hasNext())
      if (isLimited((LogicalPlan) it.next())) return true;
    return false;
  }
  /**
   * Rows of memory and of files that were listed; not what a database has at the moment it is
   * asked.
   */
  private static boolean isLasting(LogicalPlan leaf) {
    if (leaf instanceof LogicalRelation)
      return ((LogicalRelation) leaf).relation() instanceof HadoopFsRelation;
    if (leaf instanceof DataSourceV2ScanRelation)
      return ((DataSourceV2ScanRelation) leaf).scan() instanceof FileScan
          || ((DataSourceV2ScanRelation) leaf).relation().table() instanceof IcebergPyFiles;
    return leaf instanceof LocalRelation || leaf instanceof Range || leaf instanceof OneRowRelation
        || leaf instanceof InMemoryRelation || leaf instanceof LogicalRDD;
  }

  private static LogicalPlan join(
      LogicalPlan left, LogicalPlan right, String kind, Expression condition, HintInfo[] hints) {
    return new Join(left, right, (JoinType) JoinType$.MODULE$.apply(kind),
        scala.Option.apply(condition),
        new JoinHint(scala.Option.apply(hints[0]), scala.Option.apply(hints[1])));
  }
}
