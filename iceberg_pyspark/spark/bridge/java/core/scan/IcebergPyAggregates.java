import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Greatest;
import org.apache.spark.sql.catalyst.expressions.Least;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Replaces an aggregation of an Iceberg scan by rows that Python computes from metadata, or
 * computes it from rows of the files whose metadata do not suffice, and from the metadata of the
 * others.
 */
class IcebergPyAggregates {
  private final Map definitions = new HashMap();
  private final List groups = new ArrayList(), aggregates = new ArrayList();
  private final List outputs = new ArrayList();
  /** The output columns: of groups by the id of their column, of aggregates by their function. */
  private final Map ofGroups = new HashMap(), ofAggregates = new HashMap();
  private StructType columns = new StructType();

  /** Return the plan that replaces an aggregation, or null if all rows must be read. */
  static LogicalPlan planOf(Aggregate plan) {
    org.apache.spark.sql.classic.SparkSession session = IcebergPySessions.active();
    LogicalPlan below = (LogicalPlan) (Object) plan.child();
    while (below instanceof Project || below instanceof Filter)
      below = (LogicalPlan) below.children().head();
    if (!IcebergPyRule.isOurs(below) || IcebergPyRule.filesOf(below) != null) return null;
    return IcebergPyReadOptions.flag(IcebergPyReadOptions.AGGREGATES,
               session.conf().get(IcebergPyReadOptions.AGGREGATES, "true"))
        ? new IcebergPyAggregates().replace(plan, (DataSourceV2ScanRelation) below)
        : null;
  }

  private LogicalPlan replace(Aggregate plan, DataSourceV2ScanRelation relation) {
    Expression condition = condition((LogicalPlan) (Object) plan.child());
    scala.collection.Iterator it = plan.groupingExpressions().iterator();
    while (it.hasNext())
      if (!group((Expression) it.next())) return null;
    List expressions = new ArrayList();
    it = plan.aggregateExpressions().iterator();
    while (it.hasNext()) {
      Expression e = (Expression) it.next();
      Expression output = outputOf(e);
      if (output == null) return null;
      // a named expression keeps its id
      expressions.add(
          output == e || output instanceof Alias ? output : alias((NamedExpression) e, output));
    }
    Map table = IcebergPyRule.scannedTable(relation);
    if (table == null) return null;
    IcebergPyAggregateRows known = IcebergPyRequests.scanAggregate(table, columns.json(), groups,
        aggregates, condition == null ? null : IcebergPyFilters.describe(condition));
    List rows = known.rows();
    if (rows == null) return null;
    if (!known.otherFiles().isEmpty())
      return withKnown(plan, (InternalRow) internal(rows).get(0), known.otherFiles());
    return new Project(IcebergPyBridge.seq(expressions),
        new LocalRelation(IcebergPyBridge.seq(outputs), IcebergPyBridge.seq(internal(rows)), false,
            scala.Option.empty()));
  }

  /** Return the conditions between the aggregation and the scan, in terms of the scan's columns. */
  private Expression condition(LogicalPlan plan) {
    if (plan instanceof Project) {
      LogicalPlan child = (LogicalPlan) (Object) ((Project) plan).child();
      Expression below = condition(child);
      scala.collection.Iterator it = ((Project) plan).projectList().iterator();
      while (it.hasNext()) {
        Object e = it.next();
        if (e instanceof Alias)
          definitions.put(((Alias) e).exprId(), inScan((Expression) (Object) ((Alias) e).child()));
      }
      return below;
    }
    if (!(plan instanceof Filter)) return null;
    Expression below = condition((LogicalPlan) (Object) ((Filter) plan).child());
    Expression own = inScan((Expression) (Object) ((Filter) plan).condition());
    return below == null ? own : new And(below, own);
  }
  private Expression inScan(Expression e) { return IcebergPyRule.substitute(e, definitions); }

  /** Return the name of a scan column, and add it to the request; null for other expressions. */
  private String column(Expression e) {
    Expression inner = inScan(e);
    if (!(inner instanceof Attribute)) return null;
    Attribute a = (Attribute) inner;
    if (columns.getFieldIndex(a.name()).isEmpty())
      columns = columns.add(a.name(), a.dataType(), a.nullable());
    return a.name();
  }

  private boolean group(Expression e) {
    String name = column(e);
    if (name == null || !(e instanceof Attribute)) return false;
    groups.add(name);
    ofGroups.put(((Attribute) e).exprId(), output(name, e));
    return true;
  }

  /** Express `e` by the columns of groups and aggregates; null if that is impossible. */
  private Expression outputOf(Expression e) {
    if (e instanceof AggregateExpression) return aggregate((AggregateExpression) e);
    if (e instanceof Attribute) return (Expression) ofGroups.get(((Attribute) e).exprId());
    if (!e.deterministic()) return null;
    List children = new ArrayList();
    scala.collection.Iterator it = e.children().iterator();
    while (it.hasNext()) {
      Expression child = outputOf((Expression) it.next());
      if (child == null) return null;
      children.add(child);
    }
    return children.isEmpty() ? e : (Expression) e.withNewChildren(IcebergPyBridge.seq(children));
  }

  private Expression aggregate(AggregateExpression e) {
    if (e.filter().isDefined()) return null;
    Expression function = (Expression) (Object) e.aggregateFunction();
    Object key = function.canonicalized();
    if (ofAggregates.containsKey(key)) return (Expression) ofAggregates.get(key);
    String kind = null, name = null;
    if (function instanceof Min || function instanceof Max) {
      kind = function instanceof Min ? "min" : "max";
      name = column((Expression) function.children().head());
      if (name == null) return null;
    } else if (function instanceof Count && !e.isDistinct()) {
      if (countsRows((Count) function))
        kind = "rows";
      else if (function.children().size() == 1) {
        kind = "count";
        name = column((Expression) function.children().head());
        if (name == null) return null;
      }
    }
    if (kind == null) return null;
    aggregates.add(IcebergPyRequests.aggregateFunction(kind, name));
    Expression column = output(kind, e);
    ofAggregates.put(key, column);
    return column;
  }
  private static boolean countsRows(Count function) {
    scala.collection.Iterator it = function.children().iterator();
    while (it.hasNext()) {
      Object child = it.next();
      if (!(child instanceof Literal) || ((Literal) child).value() == null) return false;
    }
    return true;
  }

  private Expression output(String name, Expression like) {
    AttributeReference attribute =
        new AttributeReference(name, like.dataType(), like.nullable(), Metadata.empty(),
            NamedExpression$.MODULE$.newExprId(), IcebergPyBridge.seq(new ArrayList()));
    outputs.add(attribute);
    return attribute;
  }
  private static Alias alias(NamedExpression like, Expression e) {
    return new Alias(e, like.name(), like.exprId(), like.qualifier(), scala.Option.empty(),
        IcebergPyBridge.seq(new ArrayList()));
  }

  /** Return the aggregation of the rows of some files and of the known row of all others. */
  private LogicalPlan withKnown(Aggregate plan, InternalRow known, List files) {
    List expressions = new ArrayList();
    scala.collection.Iterator it = plan.aggregateExpressions().iterator();
    while (it.hasNext()) expressions.add(withKnown((Expression) it.next(), known));
    List arguments = new ArrayList(CollectionConverters.asJava(plan.productIterator().toSeq()));
    arguments.set(1, IcebergPyBridge.seq(expressions));
    arguments.set(2, ofFiles((LogicalPlan) (Object) plan.child(), files));
    return (LogicalPlan) plan.makeCopy(arguments.toArray());
  }
  private Expression withKnown(Expression e, InternalRow known) {
    if (e instanceof AggregateExpression) {
      Expression function = (Expression) (Object) ((AggregateExpression) e).aggregateFunction();
      int column = outputs.indexOf(ofAggregates.get(function.canonicalized()));
      Literal value = new Literal(known.get(column, e.dataType()), e.dataType());
      if (function instanceof Count) return new Add(e, value);
      scala.collection.immutable.Seq both =
          IcebergPyBridge.seq(IcebergPyBridge.list(new Object[] {e, value}));
      return function instanceof Min ? (Expression) new Least(both) : new Greatest(both);
    }
    List children = new ArrayList();
    scala.collection.Iterator it = e.children().iterator();
    while (it.hasNext()) children.add(withKnown((Expression) it.next(), known));
    return children.isEmpty() ? e : (Expression) e.withNewChildren(IcebergPyBridge.seq(children));
  }
  private static LogicalPlan ofFiles(LogicalPlan plan, List files) {
    if (plan instanceof DataSourceV2ScanRelation) {
      List arguments = new ArrayList(CollectionConverters.asJava(plan.productIterator().toSeq()));
      arguments.set(1, ((IcebergPyScan) ((DataSourceV2ScanRelation) plan).scan()).ofFiles(files));
      return (LogicalPlan) plan.makeCopy(arguments.toArray());
    }
    LogicalPlan child = ofFiles((LogicalPlan) plan.children().head(), files);
    return (LogicalPlan) plan.withNewChildren(
        IcebergPyBridge.seq(IcebergPyBridge.list(new Object[] {child})));
  }

  private List internal(List response) {
    List rows = new ArrayList();
    for (int i = 0; i < response.size(); i++) {
      List row = (List) response.get(i);
      Object[] values = new Object[outputs.size()];
      for (int c = 0; c < values.length; c++)
        values[c] = IcebergPyValues.internal(row.get(c), ((Expression) outputs.get(c)).dataType());
      rows.add(new GenericInternalRow(values));
    }
    return rows;
  }
}
