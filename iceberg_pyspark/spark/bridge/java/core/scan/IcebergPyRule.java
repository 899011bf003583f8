import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.UpdateAttributeNullability$;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.BROADCAST$;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
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
 * Replaces every scan of an Iceberg table, with the filter right above it, by a plan from Python.
 */
public class IcebergPyRule extends org.apache.spark.sql.catalyst.rules.Rule {
  /** The plans of this query's scans, by all that determines a plan. */
  private final Map plans = new HashMap();
  public IcebergPyRule() { super(); }

  /** Each query gets a rule of its own, because many threads plan queries. */
  public TreeNode apply(TreeNode plan) {
    return new IcebergPyRule().rewriteAll(IcebergPyCalls.replace((LogicalPlan) plan));
  }

  /**
   * Rewrite a plan. `requiredIds`: the ids of the columns that the plan's parent refers to, or null
   * for all. `limit`: which rows are enough, or null for all rows. `clusteringIds`: see
   * `IcebergPyClustering`. `fields`: those that the parent takes from variants, or null.
   */
  private LogicalPlan rewrite(LogicalPlan plan, Set requiredIds, IcebergPyRowLimit limit,
      Set clusteringIds, IcebergPyVariantFields fields) {
    if (plan instanceof DeleteFromTable || plan instanceof UpdateTable
        || plan instanceof MergeIntoTable || isConstraint(plan))
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
      LogicalPlan scan = replace((DataSourceV2ScanRelation) below, condition, requiredIds,
          condition == null || limit != null && limit.isOrdered() ? limit : null, clusteringIds,
          fields);
      return scan == null ? plan : scan;
    }
    if (IcebergPyBatches.isOurs(below)) return IcebergPyBatches.plan(below, condition, requiredIds);
    if (plan instanceof Aggregate) {
      LogicalPlan known = IcebergPyAggregates.planOf((Aggregate) plan);
      if (known instanceof Aggregate)
        plan = known;
      else if (known != null)
        return known;
    }
    // Spark's Python data source always returns all columns, so the plan above it tells which are
    // used
    Set usedIds =
        plan instanceof Project || plan instanceof Aggregate ? ids(plan.references()) : null;
    IcebergPyRowLimit few = IcebergPyRowLimit.below(plan, limit);
    IcebergPyVariantFields taken = plan instanceof Project || plan instanceof Aggregate
        ? IcebergPyVariantFields.of(plan)
        : null;
    List children = new ArrayList();
    boolean changed = false;
    scala.collection.Iterator it = plan.children().iterator();
    while (it.hasNext()) {
      LogicalPlan child = (LogicalPlan) it.next();
      LogicalPlan next = rewrite(child, usedIds, few, clusteringIds, taken);
      changed |= next != child;
      children.add(next);
    }
    if (!changed) return plan;
    if (taken != null && taken.isUsed()) plan = taken.above(plan);
    return (LogicalPlan) plan.withNewChildren(IcebergPyBridge.seq(children));
  }

  /** ADD CONSTRAINT ... CHECK, which Spark 4.0 lacks, refuses a relation that has no catalog. */
  private static boolean isConstraint(LogicalPlan plan) {
    return plan.getClass().getSimpleName().equals("AddCheckConstraint");
  }

  /**
   * Rewrite the plans in a plan's own expressions: pruning and Bloom filters, which Spark adds
   * after it has optimized subqueries.
   */
  private LogicalPlan withSubqueries(LogicalPlan plan) {
    return plan.subqueries().isEmpty()
        ? plan
        : (LogicalPlan) (Object) plan.transformExpressions(new IcebergPySubqueries(this));
  }
  /**
   * Rewrite a plan, and have all of it know which columns have no null: Spark looks for no nulls in
   * such keys, and reuses a broadcast for an equal key only. The state of a stream must not change
   * with the rows of a batch.
   */
  LogicalPlan rewriteAll(LogicalPlan plan) {
    LogicalPlan rewritten = rewrite(plan, null, null, IcebergPyClustering.of(plan), null);
    return rewritten == plan || plan.isStreaming()
        ? rewritten
        : (LogicalPlan) UpdateAttributeNullability$.MODULE$.apply(rewritten);
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

  /** Describe the table of a relation; null if its data source has no Python object yet. */
  static Map scannedTable(DataSourceV2ScanRelation relation) {
    if (relation.scan() instanceof IcebergPyScan)
      return scannedTable(((IcebergPyScan) relation.scan()).table.handle, null);
    String source = IcebergPySource.state(relation);
    return source == null ? null : scannedTable(null, source);
  }
  /** Describe the table of a handle, or of a relation of the data source by its state. */
  static Map scannedTable(String handle, String source) {
    return IcebergPyRequests.scannedTable(
        IcebergPyBridge.session(), handle, source, IcebergPyLocationSettings.ofSession());
  }

  /** Return Python's plan for a scan, or null if the scan must stay. */
  private LogicalPlan replace(DataSourceV2ScanRelation relation, Expression condition,
      Set requiredIds, IcebergPyRowLimit limit, Set clusteringIds, IcebergPyVariantFields fields) {
    Map table = scannedTable(relation);
    if (table == null) return null;
    List keys = keys(relation, clusteringIds);
    Map scanDefinition = scanDefinition((LogicalPlan) (Object) relation, table,
        IcebergPyScanParts.conjuncts(condition), requiredIds, limit, !keys.isEmpty(), null);
    // the copy of a join side in a runtime filter has the same column ids and shares the plan
    List key = IcebergPyBridge.list(new Object[] {
        relation.output(), scanDefinition, condition, keys, fields == null ? null : fields.key()});
    if (!plans.containsKey(key))
      plans.put(key,
          new Object[] {
              plan(relation, condition, requiredIds, scanDefinition, keys, fields), fields});
    Object[] planned = (Object[]) plans.get(key);
    if (fields != null) fields.join((IcebergPyVariantFields) planned[1]);
    return (LogicalPlan) planned[0];
  }

  /** Describe a scan to Python; `batch` is null except for a batch of a stream. */
  static Map scanDefinition(LogicalPlan relation, Map table, List conditions, Set requiredIds,
      IcebergPyRowLimit limit, boolean isGrouped, Map batch) {
    StructType readSchema = new StructType();
    List read = columns(relation, requiredIds, conditions);
    for (int i = 0; i < read.size(); i++) {
      Attribute a = (Attribute) read.get(i);
      readSchema = readSchema.add(a.name(), a.dataType(), a.nullable());
    }
    return IcebergPyRequests.scanDefinition(table, readSchema.json(),
        describe(relation, conditions),
        requiredIds == null ? null : names(columns(relation, requiredIds, new ArrayList())),
        limit == null ? null : limit.rows, limit == null ? null : limit.order(relation), isGrouped,
        filesOf(relation), batch);
  }

  /** Return the only data files that a relation scans; null for all. */
  static List filesOf(LogicalPlan relation) {
    Object scan = relation instanceof DataSourceV2ScanRelation
        ? ((DataSourceV2ScanRelation) relation).scan()
        : null;
    return scan instanceof IcebergPyScan ? ((IcebergPyScan) scan).files : null;
  }

  private static LogicalPlan plan(DataSourceV2ScanRelation relation, Expression condition,
      Set requiredIds, Map scanDefinition, List keys, IcebergPyVariantFields fields) {
    IcebergPyPlannedScan planned = IcebergPyRequests.scanPlan(scanDefinition);
    if (planned.parts() == null) return null;
    List branches = branches(planned, (LogicalPlan) (Object) relation, condition, requiredIds,
        scanDefinition, keys, fields);
    if (branches.size() == 1) return (LogicalPlan) branches.get(0);
    return new Union(IcebergPyBridge.seq(branches), false, false);
  }

  /** Return the plans of the parts of a scan, with the relation's columns. */
  static List branches(IcebergPyPlannedScan planned, LogicalPlan relation, Expression condition,
      Set requiredIds, Map scanDefinition, List keys, IcebergPyVariantFields fields) {
    List conditions = IcebergPyScanParts.conjuncts(condition);
    List provenConditions = planned.provenConditions(), parts = planned.parts();
    // the last first, so that the other indexes stay valid
    for (int i = provenConditions.size() - 1; i >= 0; i--)
      conditions.remove(((Number) provenConditions.get(i)).intValue());
    condition = IcebergPyScanParts.conjunction(conditions);
    List ours = columns(relation, requiredIds, conditions);
    if (fields != null && !fields.use(parts, ours)) fields = null;
    if (fields != null && condition != null) condition = fields.replace(condition);
    List branches = new ArrayList();
    for (int i = 0; i < parts.size(); i++) {
      List part = (List) parts.get(i);
      // the first branch keeps the relation's column ids, which the union then has too
      LogicalPlan rows = (LogicalPlan) part.get(0);
      boolean isScanned = IcebergPyScanParts.isScanned(rows);
      if (fields != null) rows = fields.narrow(rows, ours);
      LogicalPlan branch = branch(rows, (Expression) part.get(1), (List) part.get(2), ours,
          isScanned ? condition : IcebergPyScanParts.withoutPruning(condition), i > 0, fields);
      branches.add(isScanned
              ? IcebergPyScanParts.withScan(branch, relation, scanDefinition, new ArrayList(), keys,
                    IcebergPyPlanStatistics.of(relation, branch))
              : branch);
    }
    return branches;
  }

  /**
   * Return the keys that files of a relation can be grouped by; empty if the plan does not use
   * them.
   */
  private static List keys(DataSourceV2ScanRelation relation, Set clusteringIds) {
    if (relation.keyGroupedPartitioning().isEmpty()) return new ArrayList();
    List keys = new ArrayList(scala.jdk.javaapi.CollectionConverters.asJava(
        (scala.collection.immutable.Seq) relation.keyGroupedPartitioning().get()));
    for (int i = 0; i < keys.size(); i++) {
      Set ids = ids(((Expression) keys.get(i)).references());
      ids.retainAll(clusteringIds);
      if (!ids.isEmpty()) return keys;
    }
    return new ArrayList();
  }

  /** Return the columns of a relation that are needed or that conditions refer to. */
  private static List columns(LogicalPlan relation, Set requiredIds, List conditions) {
    Set filterIds = new HashSet();
    for (int i = 0; i < conditions.size(); i++)
      filterIds.addAll(ids(((Expression) conditions.get(i)).references()));
    List out = new ArrayList();
    scala.collection.Iterator it = relation.output().iterator();
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next();
      if (requiredIds == null || requiredIds.contains(a.exprId()) || filterIds.contains(a.exprId()))
        out.add(a);
    }
    return out;
  }
  private static List names(List attributes) {
    List out = new ArrayList();
    for (int i = 0; i < attributes.size(); i++) out.add(((Attribute) attributes.get(i)).name());
    return out;
  }
  private static List describe(LogicalPlan relation, List conditions) {
    List out = new ArrayList();
    for (int i = 0; i < conditions.size(); i++) {
      List one = IcebergPyBridge.list(new Object[] {conditions.get(i)});
      out.add(
          IcebergPyRequests.rowCondition(IcebergPyFilters.describe((Expression) conditions.get(i)),
              names(columns(relation, new HashSet(), one))));
    }
    return out;
  }

  /**
   * Plan one group of files: give its columns the relation's names and ids, apply the query's
   * filter, then remove deleted rows by a condition and by anti-joins with deleted keys.
   */
  private static LogicalPlan branch(LogicalPlan rows, Expression notDeleted, List antiJoins,
      List ours, Expression condition, boolean fresh, IcebergPyVariantFields fields) {
    Map byName = IcebergPyScanParts.byName(rows);
    List aliases = new ArrayList();
    List outputs = new ArrayList();
    Map attributeById = new HashMap();
    for (int i = 0; i < ours.size(); i++) {
      Attribute a = (Attribute) ours.get(i);
      Expression ofPart = (Expression) byName.remove(a.name());
      List uses = fields == null ? null : fields.usesOf(a);
      for (int u = 0; u < (uses == null ? 1 : uses.size()); u++) {
        Attribute column = uses == null ? a : fields.attributeOf(a, (Expression) uses.get(u));
        Expression value =
            uses == null ? ofPart : fields.inPart(a, (Expression) uses.get(u), (Attribute) ofPart);
        ExprId id = fresh ? NamedExpression$.MODULE$.newExprId() : column.exprId();
        Alias alias = new Alias(value, column.name(), id, column.qualifier(), scala.Option.empty(),
            IcebergPyBridge.seq(new ArrayList()));
        aliases.add(alias);
        outputs.add(alias.toAttribute());
        attributeById.put(column.exprId(), alias.toAttribute());
      }
    }
    boolean deletes = notDeleted != null || !antiJoins.isEmpty();
    if (deletes) aliases.addAll(byName.values());
    LogicalPlan plan = new Project(IcebergPyBridge.seq(aliases), rows);
    if (condition != null)
      plan = new Filter(fresh ? substitute(condition, attributeById) : condition, plan);
    if (notDeleted != null) plan = new Filter(notDeleted, plan);
    for (int i = 0; i < antiJoins.size(); i++) plan = antiJoin(plan, (Join) antiJoins.get(i));
    return deletes ? new Project(IcebergPyBridge.seq(outputs), plan) : plan;
  }

  /**
   * Join another left side with the right side of an analysed join; request a broadcast, because no
   * rule after this one would choose one.
   */
  private static LogicalPlan antiJoin(LogicalPlan left, Join join) {
    HintInfo broadcast = new HintInfo(scala.Option.apply(BROADCAST$.MODULE$));
    return new Join(left, (LogicalPlan) (Object) join.right(),
        org.apache.spark.sql.catalyst.plans.LeftAnti$.MODULE$, join.condition(),
        new JoinHint(scala.Option.empty(), scala.Option.apply(broadcast)));
  }

  static Expression substitute(Expression e, Map attributeById) {
    if (e instanceof AttributeReference
        && attributeById.containsKey(((AttributeReference) e).exprId()))
      return (Expression) attributeById.get(((AttributeReference) e).exprId());
    List children = new ArrayList();
    boolean changed = false;
    scala.collection.Iterator it = e.children().iterator();
    while (it.hasNext()) {
      Expression child = (Expression) it.next();
      Expression next = substitute(child, attributeById);
      changed |= next != child;
      children.add(next);
    }
    return changed ? (Expression) e.withNewChildren(IcebergPyBridge.seq(children)) : e;
  }
}
