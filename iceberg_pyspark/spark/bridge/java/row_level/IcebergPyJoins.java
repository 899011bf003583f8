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
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
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
import org.apache.spark.sql.catalyst.trees.TreePattern$;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.FileScan;

/** Joins of a table's rows with a source, and estimates about them. */
public class IcebergPyJoins {
  /** A source is small if the table has at least this many times its rows. */
  private static final long FEW = 4;
  /** Spark's estimate of the size of a file name, a position and a key. */
  private static final long BYTES_OF_A_PLACE = 36;

  /**
   * Return the equalities in a condition: a column of the table with its name, and a value of the
   * source with its type.
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

  /** Add the key of each equality in a condition, whichever side has the column. */
  static void addKeys(
      IcebergPyExpressions out, List keys, Expression condition, AttributeSet ours) {
    List all = IcebergPyScanParts.conjuncts(condition);
    for (int i = 0; i < all.size(); i++) {
      if (!(all.get(i) instanceof EqualTo)) continue;
      Expression left = (Expression) (Object) ((EqualTo) all.get(i)).left(),
                 right = (Expression) (Object) ((EqualTo) all.get(i)).right();
      boolean first = left.references().subsetOf(ours);
      addKey(out, keys, first ? left : right, first ? right : left, ours);
    }
  }

  /**
   * Add a key: a column of the table, possibly cast, its name, the value that it equals, and the
   * value's type. Nothing is added if the first expression is not a column, or if the value does
   * not depend only on the source.
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
   * Return the rows of a table that have a key of the source, by a join with a broadcast of the
   * keys. Return all rows if Spark would not broadcast the keys, or if the join would save little.
   * An outer join can broadcast only one side, the wrong one, so the whole table would be shuffled
   * otherwise. `records` is the table's count of rows, by which Spark estimates their size; their
   * files may be much smaller. `description` is a list of pairs of a table column and a source
   * value.
   */
  public Object semiJoinOnKeys(Object server, Object session, Object rows, Object source,
      String description, boolean outer, long records) {
    long most = ((org.apache.spark.sql.classic.SparkSession) session)
                    .sessionState()
                    .conf()
                    .autoBroadcastJoinThreshold();
    if (records * BYTES_OF_A_PLACE <= most || !outer && fits(source, most)) return rows;
    List equal = (List) IcebergPyObjects.read(server, description);
    IcebergPyRowValues values = new IcebergPyRowValues(session, rows, rows, source);
    LogicalPlan once = IcebergPyFrames.plan(source);
    // the same rows with other ids, because the result is joined with the source itself
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
   * Return whether a join of `records` rows of a table with a source needs no rebalancing: Spark
   * shuffles both sides, and every task gets from `least` to `most` bytes of the source.
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
   * Join the rows with a source, by a condition on the names of both sides. If unmatched rows of
   * the table are kept, the column "__ice_source" is null for them.
   */
  public Object joinRows(
      Object session, Object rows, Object source, Object condition, String kind) {
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
   * Return whether a DataFrame returns the same rows each time, and at most `most` bytes by Spark's
   * estimate.
   */
  public boolean fits(Object frame, long most) {
    QueryExecution execution = ((org.apache.spark.sql.classic.Dataset) frame).queryExecution();
    LogicalPlan plan = execution.optimizedPlan();
    // the optimizer replaces the current time by a literal, each time by another one
    if (!plan.deterministic()
        || execution.withCachedData().containsPattern(TreePattern$.MODULE$.CURRENT_LIKE())
        || plan.stats().sizeInBytes().bigInteger().compareTo(java.math.BigInteger.valueOf(most))
            > 0)
      return false;
    List plans = new ArrayList();
    plans.add(plan);
    plans.addAll(scala.jdk.javaapi.CollectionConverters.asJava(plan.subqueriesAll()));
    for (int i = 0; i < plans.size(); i++) {
      if (isLimited((LogicalPlan) plans.get(i))) return false;
      scala.collection.Iterator leaves = ((LogicalPlan) plans.get(i)).collectLeaves().iterator();
      while (leaves.hasNext())
        if (!isLasting((LogicalPlan) leaves.next())) return false;
    }
    return true;
  }
  /**
   * Return whether a DataFrame reads columns of files, or rows that its plan has, and returns the
   * same rows each time, so that reading it twice takes less than caching it. It calls no function
   * of a user, which may take long. A cache would also hide the groups of the files of a table, and
   * sizes of columns, by which Spark chooses joins.
   */
  public boolean needsNoCache(Object frame) {
    LogicalPlan plan = IcebergPyFrames.plan(frame);
    while (plan instanceof Project || plan instanceof Filter || plan instanceof SubqueryAlias
        || plan instanceof View) {
      if (callsOthers(plan.expressions())) return false;
      plan = (LogicalPlan) plan.children().head();
    }
    if (plan instanceof LogicalRelation
        && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation) {
      Object format = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).fileFormat();
      return (format instanceof ParquetFileFormat || format instanceof OrcFileFormat)
          && fits(frame, Long.MAX_VALUE);
    }
    return (plan instanceof OneRowRelation || plan instanceof LocalRelation
               || plan instanceof DataSourceV2ScanRelation
               || plan instanceof DataSourceV2Relation
                   && ((DataSourceV2Relation) plan).table() instanceof IcebergPyTable)
        && fits(frame, Long.MAX_VALUE);
  }
  /** Return whether a DataFrame is a row of literals, which Spark writes into conditions. */
  public boolean isLiteralRow(Object frame) {
    // other sources need not be optimized to know it
    if (!(IcebergPyFrames.plan(frame).collectLeaves().head() instanceof OneRowRelation))
      return false;
    LogicalPlan plan =
        ((org.apache.spark.sql.classic.Dataset) frame).queryExecution().optimizedPlan();
    if (!(plan instanceof Project) || !(plan.children().head() instanceof OneRowRelation))
      return false;
    scala.collection.Iterator it = plan.expressions().iterator();
    while (it.hasNext())
      if (!((Expression) ((Expression) it.next()).children().head()).foldable()) return false;
    return true;
  }
  /** Return whether one of the expressions calls a user's function or has a subquery. */
  private static boolean callsOthers(scala.collection.immutable.Seq expressions) {
    scala.collection.Iterator it = expressions.iterator();
    while (it.hasNext()) {
      Expression one = (Expression) it.next();
      if (one instanceof UserDefinedExpression || one instanceof PlanExpression
          || callsOthers(one.children()))
        return true;
    }
    return false;
  }
  /** A limit may select other rows the next time. */
  private static boolean isLimited(LogicalPlan plan) {
    if (plan instanceof GlobalLimit || plan instanceof LocalLimit) return true;
    scala.collection.Iterator it = plan.children().iterator();
    while (it.hasNext())
      if (isLimited((LogicalPlan) it.next())) return true;
    return false;
  }
  /**
   * Return whether a leaf reads rows in memory or listed files, and not the current rows of a
   * database.
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
