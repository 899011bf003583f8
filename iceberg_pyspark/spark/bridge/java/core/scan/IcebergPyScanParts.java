import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Descending$;
import org.apache.spark.sql.catalyst.expressions.DynamicPruning;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NullOrdering;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.NullsLast$;
import org.apache.spark.sql.catalyst.expressions.SortDirection;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.expressions.TransformExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.jdk.javaapi.CollectionConverters;

/** Puts one part of a scan, as Python planned it, into the query's plan. */
class IcebergPyScanParts {
  /** Return whether Spark's own reader reads the part, with a scan that accepts runtime filters. */
  static boolean isScanned(LogicalPlan plan) {
    scala.collection.Iterator leaves = plan.collectLeaves().iterator();
    while (leaves.hasNext())
      if (isFiles((LogicalPlan) leaves.next())) return true;
    return false;
  }
  /** Return the columns of a plan by name. */
  static Map byName(LogicalPlan plan) {
    Map out = new HashMap();
    scala.collection.Iterator it = plan.output().iterator();
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next();
      out.put(a.name(), a);
    }
    return out;
  }
  private static boolean isFiles(LogicalPlan leaf) {
    return leaf instanceof DataSourceV2Relation
        && ((DataSourceV2Relation) leaf).table() instanceof IcebergPyFiles;
  }

  /**
   * Return the plan with a scan in place of its relation of files. `conditions` are the conditions
   * above the plan; the reader may skip rows by them and by the plan's own conditions. `keys` are
   * the columns by which Spark was told that files are grouped, as the plan names them;
   * `statistics` are the statistics of columns that Spark was told.
   */
  static LogicalPlan withScan(LogicalPlan plan, LogicalPlan like, Map scanDefinition,
      List conditions, List keys, IcebergPyPlanStatistics statistics) {
    if (plan instanceof Project) {
      Map definitions = new HashMap();
      scala.collection.Iterator it = ((Project) plan).projectList().iterator();
      while (it.hasNext()) {
        Object e = it.next();
        if (e instanceof Alias)
          definitions.put(((Alias) e).exprId(), (Expression) (Object) ((Alias) e).child());
      }
      LogicalPlan child = (LogicalPlan) (Object) ((Project) plan).child();
      return IcebergPyRenaming.project((Project) plan,
          withScan(child, like, scanDefinition, substitute(conditions, definitions),
              substitute(keys, definitions), statistics.inChild(definitions)));
    }
    if (plan instanceof Filter) {
      List below = conjuncts((Expression) (Object) ((Filter) plan).condition());
      below.addAll(conditions);
      LogicalPlan child = (LogicalPlan) (Object) ((Filter) plan).child();
      return new Filter((Expression) (Object) ((Filter) plan).condition(),
          withScan(child, like, scanDefinition, below, keys, statistics));
    }
    if (plan instanceof Join) {
      // an anti-join that removes deleted rows: all remaining rows come from the left side
      LogicalPlan left = (LogicalPlan) (Object) ((Join) plan).left();
      return (LogicalPlan) plan.withNewChildren(IcebergPyBridge.seq(IcebergPyBridge.list(
          new Object[] {withScan(left, like, scanDefinition, conditions, keys, statistics),
              (Object) ((Join) plan).right()})));
    }
    if (!isFiles(plan)) return plan;
    DataSourceV2Relation files = (DataSourceV2Relation) plan;
    if (!(like instanceof DataSourceV2ScanRelation))
      return IcebergPyBatches.scan(files, like, scanDefinition,
          readerFilters(files, (IcebergPyFiles) files.table(), conditions));
    return scan(
        files, (DataSourceV2ScanRelation) like, scanDefinition, conditions, keys, statistics);
  }

  /** Copy `like`, because the constructor gets one more argument in each release. */
  private static LogicalPlan scan(DataSourceV2Relation relation, DataSourceV2ScanRelation like,
      Map scanDefinition, List conditions, List keys, IcebergPyPlanStatistics statistics) {
    IcebergPyFiles files = (IcebergPyFiles) relation.table();
    List arguments = new ArrayList(CollectionConverters.asJava(like.productIterator().toSeq()));
    arguments.set(0, relation);
    IcebergPySplits splits = splits(like);
    arguments.set(1,
        files.scan(readerFilters(relation, files, conditions), scanDefinition, splits,
            statistics.of((LogicalPlan) (Object) relation, files.rows())));
    arguments.set(2, relation.output());
    for (int i = 3; i < arguments.size(); i++) {
      if (arguments.get(i) instanceof scala.Option) arguments.set(i, scala.Option.empty());
      if (arguments.get(i) instanceof scala.collection.immutable.Seq)
        arguments.set(i, IcebergPyBridge.seq(new ArrayList()));
    }
    if (files.isGrouped() && areOf(relation, keys)) {
      arguments.set(3, scala.Option.apply(IcebergPyBridge.seq(keys)));
      // by some of several keys, Spark merges groups, and their order is lost
      List order = keys.size() == 1 && preservesOrdering(like) ? orders(relation, files, splits)
                                                               : new ArrayList();
      if (!order.isEmpty()) {
        splits.keepWhole();
        arguments.set(4, scala.Option.apply(IcebergPyBridge.seq(order)));
      }
    }
    return (LogicalPlan) like.makeCopy(arguments.toArray());
  }

  private static boolean preservesOrdering(DataSourceV2ScanRelation like) {
    return like.scan() instanceof IcebergPyScan
        && ((IcebergPyScan) like.scan()).preservesOrdering();
  }
  private static List orders(
      DataSourceV2Relation relation, IcebergPyFiles files, IcebergPySplits splits) {
    Map byName = byName((LogicalPlan) (Object) relation);
    List out = new ArrayList(), fields = files.sortOrder(splits);
    for (int i = 0; i < fields.size(); i++) {
      List f = (List) fields.get(i);
      if (!byName.containsKey(f.get(0))) break;
      SortDirection direction = f.get(1).equals("asc") ? (SortDirection) Ascending$.MODULE$
                                                       : (SortDirection) Descending$.MODULE$;
      NullOrdering nulls = f.get(2).equals("nulls-first") ? (NullOrdering) NullsFirst$.MODULE$
                                                          : (NullOrdering) NullsLast$.MODULE$;
      out.add(new SortOrder((Expression) byName.get(f.get(0)), direction, nulls,
          IcebergPyBridge.seq(new ArrayList())));
    }
    return out;
  }

  /** Use the options and properties of a catalog's table; a data source has only its options. */
  private static IcebergPySplits splits(DataSourceV2ScanRelation like) {
    if (like.scan() instanceof IcebergPyScan) {
      IcebergPyScan scan = (IcebergPyScan) like.scan();
      return new IcebergPySplits(scan.options, scan.table.properties());
    }
    return new IcebergPySplits(
        ((DataSourceV2Relation) (Object) like.relation()).options(), new HashMap());
  }

  static List substitute(List expressions, Map definitions) {
    List out = new ArrayList();
    for (int i = 0; i < expressions.size(); i++)
      out.add(IcebergPyRule.substitute((Expression) expressions.get(i), definitions));
    return out;
  }
  /** Return whether all keys are columns of a relation, or functions of its columns. */
  private static boolean areOf(DataSourceV2Relation relation, List keys) {
    Set ids = IcebergPyRule.ids(relation.outputSet());
    for (int i = 0; i < keys.size(); i++) {
      Expression key = (Expression) keys.get(i);
      Expression column =
          key instanceof TransformExpression ? (Expression) key.children().last() : key;
      if (!(column instanceof Attribute) || !ids.contains(((Attribute) column).exprId()))
        return false;
    }
    return !keys.isEmpty();
  }

  /** Return the conditions on columns in the files, as filters of Spark's reader. */
  private static org.apache.spark.sql.sources.Filter[] readerFilters(
      DataSourceV2Relation relation, IcebergPyFiles files, List conditions) {
    Set read = new HashSet();
    scala.collection.Iterator it = relation.output().iterator();
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next();
      if (files.isRead(a.name())) read.add(a.exprId());
    }
    List out = new ArrayList();
    for (int i = 0; i < conditions.size(); i++) {
      Expression e = (Expression) conditions.get(i);
      if (!e.deterministic() || SubqueryExpression$.MODULE$.hasSubquery(e)
          || !read.containsAll(IcebergPyRule.ids(e.references())))
        continue;
      scala.Option filter =
          DataSourceStrategy$.MODULE$.translateFilter(e, files.readsNestedFilters());
      if (filter.isDefined()) out.add(filter.get());
    }
    return (org.apache.spark.sql.sources.Filter[]) out.toArray(
        new org.apache.spark.sql.sources.Filter[0]);
  }

  static List conjuncts(Expression condition) {
    List out = new ArrayList();
    if (condition instanceof And) {
      out.addAll(conjuncts((Expression) (Object) ((And) condition).left()));
      out.addAll(conjuncts((Expression) (Object) ((And) condition).right()));
    } else if (condition != null)
      out.add(condition);
    return out;
  }

  /**
   * Return a condition without dynamic pruning, for a scan without runtime filters; null if empty.
   */
  static Expression withoutPruning(Expression condition) {
    List all = conjuncts(condition), others = new ArrayList();
    for (int i = 0; i < all.size(); i++)
      if (!(all.get(i) instanceof DynamicPruning)) others.add(all.get(i));
    return conjunction(others);
  }

  /** Join conditions with AND; null if there are none. */
  static Expression conjunction(List conditions) {
    Expression all = null;
    for (int i = 0; i < conditions.size(); i++) {
      Expression one = (Expression) conditions.get(i);
      all = all == null ? one : new And(all, one);
    }
    return all;
  }
}
