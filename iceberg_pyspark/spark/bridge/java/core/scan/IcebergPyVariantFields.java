import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ConditionalExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.variant.VariantGet;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.VariantType;

/**
 * The fields that a query takes from the variants of a scan: Spark's Parquet reader reads a column
 * of fields in place of the variants, as Spark plans it for its own files.
 *
 * As there, a field is read for every row, also for rows that a condition then drops, and a strict
 * `variant_get` fails for each of them that does not have the type. Rows that the table has deleted
 * must not matter, and branches not taken should not: there the variants are read whole.
 */
class IcebergPyVariantFields {
  private static final String ENABLED = "spark.sql.variant.pushVariantIntoScan";
  /** By the id of a column: its uses, `VariantGet` or `IsNull`, each with an attribute. */
  private Map ofColumns = new HashMap();
  private final Set whole = new HashSet();
  private boolean isStrict, isUsed;

  /** Return the fields of a plan right above a scan, maybe with filters; null if it takes none. */
  static IcebergPyVariantFields of(LogicalPlan plan) {
    LogicalPlan below = (LogicalPlan) plan.children().head();
    List expressions = new ArrayList(
        scala.jdk.javaapi.CollectionConverters.asJava((scala.collection.Seq) plan.expressions()));
    while (below instanceof Filter) {
      expressions.addAll(
          IcebergPyScanParts.conjuncts((Expression) (Object) ((Filter) below).condition()));
      below = (LogicalPlan) (Object) ((Filter) below).child();
    }
    if (!IcebergPyRule.isOurs(below)) return null;
    IcebergPyVariantFields fields = new IcebergPyVariantFields();
    scala.collection.Iterator it = below.output().iterator();
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next();
      if (a.dataType() instanceof VariantType) fields.ofColumns.put(a.exprId(), new HashMap());
    }
    if (fields.ofColumns.isEmpty() || !isEnabled()) return null;
    for (int i = 0; i < expressions.size(); i++)
      fields.collect((Expression) expressions.get(i), false);
    fields.ofColumns.keySet().removeAll(fields.whole);
    Iterator columns = fields.ofColumns.values().iterator();
    while (columns.hasNext())
      if (!takesField((Map) columns.next())) columns.remove();
    return fields.ofColumns.isEmpty() ? null : fields;
  }
  private static boolean isEnabled() {
    scala.Option value = IcebergPySessions.active().conf().getOption(ENABLED);
    return value.isDefined() && "true".equalsIgnoreCase((String) value.get())
        && IcebergPyFileInternals.hasVariantFields();
  }
  private static boolean takesField(Map uses) {
    Iterator it = uses.keySet().iterator();
    while (it.hasNext())
      if (it.next() instanceof VariantGet) return true;
    return false;
  }

  private void collect(Expression e, boolean isConditional) {
    Map uses = usesOf(e);
    if (uses != null) {
      boolean strict = e instanceof VariantGet && ((VariantGet) e).failOnError()
          && !(e.dataType() instanceof VariantType);
      isStrict |= strict;
      if (strict && isConditional) whole.addAll(IcebergPyRule.ids(e.references()));
      Expression use = useOf(e);
      if (!uses.containsKey(use))
        uses.put(use,
            new AttributeReference(((Attribute) child(e)).name() + ":" + uses.size(),
                use.dataType(), use.nullable(), Metadata.empty(),
                NamedExpression$.MODULE$.newExprId(), IcebergPyBridge.seq(new ArrayList())));
      return;
    }
    if (e instanceof Attribute || SubqueryExpression$.MODULE$.hasSubquery(e)) {
      whole.addAll(IcebergPyRule.ids(e.references()));
      return;
    }
    isConditional |= e instanceof ConditionalExpression || e instanceof And || e instanceof Or
        || e instanceof AggregateExpression && ((AggregateExpression) e).filter().isDefined();
    scala.collection.Iterator it = e.children().iterator();
    while (it.hasNext()) collect((Expression) it.next(), isConditional);
  }
  /** Return the uses that an expression belongs to; null if it is none of a single field. */
  private Map usesOf(Expression e) {
    if (!(e instanceof VariantGet || e instanceof IsNull || e instanceof IsNotNull)) return null;
    if (e instanceof VariantGet
        && (!(((VariantGet) e).path() instanceof Literal)
            || ((Literal) (Object) ((VariantGet) e).path()).value() == null))
      return null;
    Expression child = child(e);
    return child instanceof Attribute ? (Map) ofColumns.get(((Attribute) child).exprId()) : null;
  }
  private static Expression useOf(Expression e) {
    return (Expression) (e instanceof IsNotNull ? new IsNull(child(e)) : e).canonicalized();
  }
  private static Expression child(Expression e) { return (Expression) e.children().head(); }

  /** Return what determines a plan with these fields. */
  Object key() {
    Map out = new HashMap();
    Iterator it = ofColumns.entrySet().iterator();
    while (it.hasNext()) {
      Map.Entry column = (Map.Entry) it.next();
      out.put(column.getKey(), new HashSet(((Map) column.getValue()).keySet()));
    }
    return out;
  }
  /** Use the columns of a plan that was made for equal fields. */
  void join(IcebergPyVariantFields planned) {
    ofColumns = planned.ofColumns;
    isUsed = planned.isUsed;
  }

  /** Decide by the parts of a scan whether its plan has columns of fields. */
  boolean use(List parts, List columns) {
    boolean narrows = false;
    for (int i = 0; i < parts.size(); i++) {
      List part = (List) parts.get(i);
      LogicalPlan rows = (LogicalPlan) part.get(0);
      boolean drops = part.get(1) != null || !((List) part.get(2)).isEmpty()
          || IcebergPyScanParts.isScanned(rows) && relationOf(rows) == null;
      if (isStrict && drops) return false;
      narrows |= narrow(rows, columns) != rows;
    }
    isUsed = narrows;
    return isUsed;
  }
  boolean isUsed() { return isUsed; }

  /** Return the uses of a column, in the order of their attributes; null for other columns. */
  List usesOf(Attribute column) {
    Map uses = (Map) ofColumns.get(column.exprId());
    if (uses == null) return null;
    List out = new ArrayList(uses.keySet());
    java.util.Collections.sort(out, new IcebergPyVariantOrder(uses));
    return out;
  }
  Attribute attributeOf(Attribute column, Expression use) {
    return (Attribute) ((Map) ofColumns.get(column.exprId())).get(use);
  }
  /** Express a use by a part's column, of whole variants or of fields. */
  Expression inPart(Attribute column, Expression use, Attribute ofPart) {
    if (use instanceof IsNull || ofPart.dataType() instanceof VariantType)
      return (Expression) use.withNewChildren(IcebergPyBridge.seq(IcebergPyBridge.list(
          use instanceof IsNull ? new Object[] {ofPart}
                                : new Object[] {ofPart, (Object) ((VariantGet) use).path()})));
    return new GetStructField(ofPart, fieldsOf(column).indexOf(use), scala.Option.empty());
  }
  private List fieldsOf(Attribute column) {
    List out = new ArrayList(), uses = usesOf(column);
    for (int i = 0; i < uses.size(); i++)
      if (uses.get(i) instanceof VariantGet) out.add(uses.get(i));
    return out;
  }

  /** Replace the uses in an expression above the scan by the columns of fields. */
  Expression replace(Expression e) {
    Map uses = usesOf(e);
    if (uses != null)
      return e instanceof IsNotNull ? new Not((Expression) uses.get(useOf(e)))
                                    : (Expression) uses.get(useOf(e));
    List children = new ArrayList();
    boolean changed = false;
    scala.collection.Iterator it = e.children().iterator();
    while (it.hasNext()) {
      Expression child = (Expression) it.next(), next = replace(child);
      changed |= next != child;
      children.add(next);
    }
    return changed ? (Expression) e.withNewChildren(IcebergPyBridge.seq(children)) : e;
  }

  /** Replace the uses in the plan above the scan. */
  LogicalPlan above(LogicalPlan plan) {
    List arguments = new ArrayList(
        scala.jdk.javaapi.CollectionConverters.asJava(plan.productIterator().toSeq()));
    for (int i = 0; i < arguments.size(); i++) {
      if (!(arguments.get(i) instanceof scala.collection.immutable.Seq)) continue;
      List out = new ArrayList();
      scala.collection.Iterator it = ((scala.collection.Seq) arguments.get(i)).iterator();
      while (it.hasNext()) out.add(replace((Expression) it.next()));
      arguments.set(i, IcebergPyBridge.seq(out));
    }
    return (LogicalPlan) plan.makeCopy(arguments.toArray());
  }

  /** Return a part that reads fields; the same part if its reader cannot read fields alone. */
  LogicalPlan narrow(LogicalPlan rows, List columns) {
    DataSourceV2Relation relation = relationOf(rows);
    if (relation == null) return rows;
    Map structs = new HashMap(), byName = IcebergPyScanParts.byName((LogicalPlan) (Object) rows);
    for (int i = 0; i < columns.size(); i++) {
      Attribute column = (Attribute) columns.get(i);
      if (!ofColumns.containsKey(column.exprId())) continue;
      Attribute read = readBy((Project) rows, (Attribute) byName.get(column.name()));
      if (read != null) structs.put(read.name(), structOf(fieldsOf(column)));
    }
    IcebergPyFiles files =
        structs.isEmpty() ? null : ((IcebergPyFiles) relation.table()).withFields(structs);
    if (files == null) return rows;
    DataSourceV2Relation narrowed =
        DataSourceV2Relation$.MODULE$.create(files, scala.Option.empty(), scala.Option.empty());
    Map byId = new HashMap(),
        attributes = IcebergPyScanParts.byName((LogicalPlan) (Object) narrowed);
    scala.collection.Iterator it = relation.output().iterator();
    while (it.hasNext()) {
      Attribute a = (Attribute) it.next();
      byId.put(a.exprId(), attributes.get(a.name()));
    }
    List outputs = new ArrayList();
    it = ((Project) rows).projectList().iterator();
    while (it.hasNext()) outputs.add(IcebergPyRule.substitute((Expression) it.next(), byId));
    return new Project(IcebergPyBridge.seq(outputs), (LogicalPlan) (Object) narrowed);
  }
  /** Return the relation right below a part's projection; null for other parts. */
  private static DataSourceV2Relation relationOf(LogicalPlan rows) {
    if (!(rows instanceof Project)) return null;
    Object child = ((Project) rows).child();
    return child instanceof DataSourceV2Relation
            && ((DataSourceV2Relation) child).table() instanceof IcebergPyFiles
        ? (DataSourceV2Relation) child
        : null;
  }
  /** Return the column that an output renames; null if it is computed. */
  private static Attribute readBy(Project rows, Attribute output) {
    scala.collection.Iterator it = rows.projectList().iterator();
    while (it.hasNext()) {
      Expression e = (Expression) it.next();
      if (e instanceof org.apache.spark.sql.catalyst.expressions.Alias
          && ((org.apache.spark.sql.catalyst.expressions.Alias) e).exprId().equals(output.exprId()))
        return child(e) instanceof Attribute ? (Attribute) child(e) : null;
    }
    return null;
  }
  private static StructType structOf(List fields) {
    StructType out = new StructType();
    for (int i = 0; i < fields.size(); i++) {
      VariantGet get = (VariantGet) fields.get(i);
      scala.Option zone = get.timeZoneId();
      out = out.add(String.valueOf(i), get.targetType(), true,
          IcebergPyFileInternals.variantField(((Literal) (Object) get.path()).value().toString(),
              get.failOnError(), zone.isDefined() ? (String) zone.get() : "UTC"));
    }
    return out;
  }
}
