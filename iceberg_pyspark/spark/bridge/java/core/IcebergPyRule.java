import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.BROADCAST$;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.StructType;

/**
 * Puts a plan made by Python in the place of every scan of ours, the filter right above it in
 * hand.
 */
public class IcebergPyRule extends org.apache.spark.sql.catalyst.rules.Rule {
  /** The plans made for this query, by all that they are made of. */
  private final Map made = new HashMap();
  public IcebergPyRule() { super(); }

  /** Each query by a rule of its own: queries are planned by many threads. */
  public TreeNode apply(TreeNode plan) {
    return new IcebergPyRule().rewritten(IcebergPyCalls.replaced((LogicalPlan) plan));
  }

  /**
   * `needed` has the ids of the columns that the plan's parent refers to, null for all; of so many
   * rows as `limit` says any are as good, null for all. `clustered` is of `IcebergPyClustering`.
   */
  private LogicalPlan rewrite(LogicalPlan plan, Set needed, Integer limit, Set clustered) {
    if (plan instanceof DeleteFromTable || plan instanceof UpdateTable
        || plan instanceof MergeIntoTable)
      return plan;
    plan = withSubqueries(plan);
    LogicalPlan below = plan;
    Expression condition = null;
    while (below instanceof Filter) {
      Expression inner = (Expression) (Object) ((Filter) below).condition();
      condition = condition == null ? inner : new And(inner, condition);
      below = withSubqueries((LogicalPlan) (Object) ((Filter) below).child());
    }
    if (isOurs(below)) {
      LogicalPlan scan = replaced((DataSourceV2ScanRelation) below, condition, needed,
          condition == null ? limit : null, clustered);
      return scan == null ? plan : scan;
    }
    if (plan instanceof Aggregate) {
      LogicalPlan known = IcebergPyAggregates.known((Aggregate) plan);
      if (known != null) return known;
    }
    // Spark's Python data source always gives all columns: what is above it says which are used
    Set used = plan instanceof Project || plan instanceof Aggregate ? ids(plan.references()) : null;
    Integer few = plan instanceof Project ? limit : null;
    if (plan instanceof LocalLimit) few = limitOf((LocalLimit) plan);
    List children = new ArrayList();
    boolean changed = false;
    scala.collection.Iterator it = plan.children().iterator();
    while (it.hasNext()) {
      LogicalPlan child = (LogicalPlan) it.next();
      LogicalPlan next = rewrite(child, used, few, clustered);
      changed |= next != child;
      children.add(next);
    }
    return changed ? (LogicalPlan) plan.withNewChildren(IcebergPyBridge.seq(children)) : plan;
  }

  /**
   * The plan with those in its own expressions rewritten: pruning and Bloom filters that Spark
   * made after it optimized subqueries.
   */
  private LogicalPlan withSubqueries(LogicalPlan plan) {
    return plan.subqueries().isEmpty()
        ? plan
        : (LogicalPlan) (Object) plan.transformExpressions(new IcebergPySubqueries(this));
  }
  LogicalPlan rewritten(LogicalPlan plan) {
    return rewrite(plan, null, null, IcebergPyClustering.of(plan));
  }

  private static Integer limitOf(LocalLimit plan) {
    Object rows = plan.limitExpr();
    return rows instanceof Literal && ((Literal) rows).value() instanceof Integer
        ? (Integer) ((Literal) rows).value()
        : null;
  }

  static Set ids(AttributeSet attributes) {
    Set ids = new HashSet();
    scala.collection.Iterator it = attributes.iterator();
    while (it.hasNext()) ids.add(((Attribute) it.next()).exprId());
    return ids;
  }

  static boolean isOurs(LogicalPlan plan) {
    if (!(plan instanceof DataSourceV2ScanRelation)) return false;
    Scan scan = ((DataSourceV2ScanRelation) plan).scan();
    return scan instanceof IcebergPyScan || IcebergPySource.isOurs((DataSourceV2ScanRelation) plan);
  }

  /** Which table is meant, of the catalog or of a data source; null where there is none yet. */
  static Map scanned(DataSourceV2ScanRelation relation) {
    if (relation.scan() instanceof IcebergPyScan)
      return scanned(((IcebergPyScan) relation.scan()).table.handle, null);
    String source = IcebergPySource.state(relation);
    return source == null ? null : scanned(null, source);
  }
  /** The table of a handle, or a relation of the data source by its state. */
  static Map scanned(String handle, String source) {
    return IcebergPyQuestions.scannedTable(
        IcebergPyBridge.session(), handle, source, IcebergPyLocationSettings.said());
  }

  /** What Python makes of a scan; null where the scan is to stay. */
  private LogicalPlan replaced(DataSourceV2ScanRelation relation, Expression condition, Set needed,
      Integer limit, Set clustered) {
    List conditions = IcebergPyParts.conjuncts(condition);
    StructType wanted = new StructType();
    List read = columns(relation, needed, conditions);
    for (int i = 0; i < read.size(); i++) {
      Attribute a = (Attribute) read.get(i);
      wanted = wanted.add(a.name(), a.dataType(), a.nullable());
    }
    Map table = scanned(relation);
    if (table == null) return null;
    List keys = keys(relation, clustered);
    Map question =
        IcebergPyQuestions.scanQuestion(table, wanted.json(), described(relation, conditions),
            needed == null ? null : names(columns(relation, needed, new ArrayList())), limit,
            !keys.isEmpty());
    // a run-time filter has a copy of the other side of its join, whose columns have the same ids
    List key = IcebergPyBridge.list(new Object[] {relation.output(), question, condition, keys});
    if (!made.containsKey(key)) made.put(key, planned(relation, condition, needed, question, keys));
    return (LogicalPlan) made.get(key);
  }

  private static LogicalPlan planned(DataSourceV2ScanRelation relation, Expression condition,
      Set needed, Map question, List keys) {
    List conditions = IcebergPyParts.conjuncts(condition);
    IcebergPyPlannedScan planned = IcebergPyQuestions.scanPlan(question);
    List proven = planned.proven(), parts = planned.parts();
    if (parts == null) return null;
    // the last first: those before keep their places
    for (int i = proven.size() - 1; i >= 0; i--)
      conditions.remove(((Number) proven.get(i)).intValue());
    condition = IcebergPyParts.together(conditions);
    List ours = columns(relation, needed, conditions);
    List branches = new ArrayList();
    for (int i = 0; i < parts.size(); i++) {
      List part = (List) parts.get(i);
      // the first branch keeps the relation's own ids, which the union above then has too
      LogicalPlan rows = (LogicalPlan) part.get(0);
      boolean scanned = IcebergPyParts.isScanned(rows);
      LogicalPlan branch = branch(rows, (Expression) part.get(1), (List) part.get(2), ours,
          scanned ? condition : IcebergPyParts.withoutPruning(condition), i > 0);
      branches.add(scanned
              ? IcebergPyParts.scanned(branch, relation, question, new ArrayList(), keys)
              : branch);
    }
    if (branches.size() == 1) return (LogicalPlan) branches.get(0);
    return new Union(IcebergPyBridge.seq(branches), false, false);
  }

  /** What the files of a relation can be grouped by; nothing where the plan has no use for it. */
  private static List keys(DataSourceV2ScanRelation relation, Set clustered) {
    if (relation.keyGroupedPartitioning().isEmpty()) return new ArrayList();
    List keys = new ArrayList(scala.jdk.javaapi.CollectionConverters.asJava(
        (scala.collection.immutable.Seq) relation.keyGroupedPartitioning().get()));
    for (int i = 0; i < keys.size(); i++) {
      Set ids = ids(((Expression) keys.get(i)).references());
      ids.retainAll(clustered);
      if (!ids.isEmpty()) return keys;
    }
    return new ArrayList();
  }

  /** The columns of a relation that are needed, or that conditions are on. */
  private static List columns(DataSourceV2ScanRelation relation, Set needed, List conditions) {
    Set filtered = new HashSet();
    for (int i = 0; i < conditions.size(); i++)
      filtered.addAll(ids(((Expression) conditions.get(i)).references()));
    List out = new ArrayList();
    scala.collection.Iterator it = relation.output().iterator();
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next();
      if (needed == null || needed.contains(a.exprId()) || filtered.contains(a.exprId()))
        out.add(a);
    }
    return out;
  }
  private static List names(List attributes) {
    List out = new ArrayList();
    for (int i = 0; i < attributes.size(); i++) out.add(((Attribute) attributes.get(i)).name());
    return out;
  }
  private static List described(DataSourceV2ScanRelation relation, List conditions) {
    List out = new ArrayList();
    for (int i = 0; i < conditions.size(); i++) {
      List one = IcebergPyBridge.list(new Object[] {conditions.get(i)});
      out.add(
          IcebergPyQuestions.rowCondition(IcebergPyFilters.describe((Expression) conditions.get(i)),
              names(columns(relation, new HashSet(), one))));
    }
    return out;
  }

  /**
   * One group of files: rename its columns to ours, then the query's filter, then what its deletes
   * leave: a condition, and anti-joins with deleted keys.
   */
  private static LogicalPlan branch(LogicalPlan made, Expression live, List antiJoins, List ours,
      Expression condition, boolean fresh) {
    Map byName = IcebergPyParts.byName(made);
    List renamed = new ArrayList();
    List outputs = new ArrayList();
    Map exchanged = new HashMap();
    for (int i = 0; i < ours.size(); i++) {
      Attribute a = (Attribute) ours.get(i);
      ExprId id = fresh ? NamedExpression$.MODULE$.newExprId() : a.exprId();
      Alias alias = new Alias((Expression) byName.remove(a.name()), a.name(), id, a.qualifier(),
          scala.Option.empty(), IcebergPyBridge.seq(new ArrayList()));
      renamed.add(alias);
      outputs.add(alias.toAttribute());
      exchanged.put(a.exprId(), alias.toAttribute());
    }
    boolean deletes = live != null || !antiJoins.isEmpty();
    if (deletes) renamed.addAll(byName.values());
    LogicalPlan plan = new Project(IcebergPyBridge.seq(renamed), made);
    if (condition != null)
      plan = new Filter(fresh ? substituted(condition, exchanged) : condition, plan);
    if (live != null) plan = new Filter(live, plan);
    for (int i = 0; i < antiJoins.size(); i++) plan = antiJoin(plan, (Join) antiJoins.get(i));
    return deletes ? new Project(IcebergPyBridge.seq(outputs), plan) : plan;
  }

  /**
   * The right side and condition of an analysed join on another left side; a broadcast, which
   * nothing after this rule would choose.
   */
  private static LogicalPlan antiJoin(LogicalPlan left, Join analysed) {
    HintInfo broadcast = new HintInfo(scala.Option.apply(BROADCAST$.MODULE$));
    return new Join(left, (LogicalPlan) (Object) analysed.right(),
        org.apache.spark.sql.catalyst.plans.LeftAnti$.MODULE$, analysed.condition(),
        new JoinHint(scala.Option.empty(), scala.Option.apply(broadcast)));
  }

  static Expression substituted(Expression e, Map exchanged) {
    if (e instanceof AttributeReference && exchanged.containsKey(((AttributeReference) e).exprId()))
      return (Expression) exchanged.get(((AttributeReference) e).exprId());
    List children = new ArrayList();
    boolean changed = false;
    scala.collection.Iterator it = e.children().iterator();
    while (it.hasNext()) {
      Expression child = (Expression) it.next();
      Expression next = substituted(child, exchanged);
      changed |= next != child;
      children.add(next);
    }
    return changed ? (Expression) e.withNewChildren(IcebergPyBridge.seq(children)) : e;
  }
}
