import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Projects a scan, and gives its columns the ids of the projection where they keep their names:
 * Spark reuses a shuffle for an equal plan, and a plan with an alias differs from one without.
 */
class IcebergPyRenaming {
  /** Return a projection of a plan; one of another such projection becomes one projection. */
  static LogicalPlan project(Project projection, LogicalPlan below) {
    List columns = new ArrayList(CollectionConverters.asJava(projection.projectList()));
    if (below instanceof IcebergPyInputFiles) {
      Map definitions = definitions((Project) below);
      if (usesOnce(columns, definitions)) {
        columns = replace(columns, definitions);
        below = (LogicalPlan) (Object) ((Project) below).child();
      }
    }
    if (!(below instanceof DataSourceV2ScanRelation))
      return new IcebergPyInputFiles(IcebergPyBridge.seq(columns), below);
    Map uses = uses(columns), renamed = new HashMap();
    for (int i = 0; i < columns.size(); i++) {
      Attribute column = renamedBy(columns.get(i));
      if (column == null || ((Integer) uses.get(column.exprId())).intValue() != 1) continue;
      Attribute named = column.withExprId(((Alias) columns.get(i)).exprId());
      renamed.put(column.exprId(), named);
      columns.set(i, named);
    }
    return new IcebergPyInputFiles(
        IcebergPyBridge.seq(columns), withIds((DataSourceV2ScanRelation) below, renamed));
  }

  /** Return the column to which an alias gives only another id, or null. */
  private static Attribute renamedBy(Object e) {
    if (!(e instanceof Alias)) return null;
    Object child = ((Alias) e).child();
    return child instanceof Attribute && ((Attribute) child).name().equals(((Alias) e).name())
        ? (Attribute) child
        : null;
  }
  /** Return the expressions of computed columns by id. */
  private static Map definitions(Project projection) {
    Map out = new HashMap();
    scala.collection.Iterator it = projection.projectList().iterator();
    while (it.hasNext()) {
      Object e = it.next();
      if (e instanceof Alias) out.put(((Alias) e).exprId(), ((Alias) e).child());
    }
    return out;
  }
  private static boolean usesOnce(List columns, Map definitions) {
    Map uses = uses(columns);
    java.util.Iterator it = definitions.entrySet().iterator();
    while (it.hasNext()) {
      Map.Entry one = (Map.Entry) it.next();
      Object count = uses.get(one.getKey());
      if (!(one.getValue() instanceof Attribute) && count != null
          && ((Integer) count).intValue() > 1)
        return false;
    }
    return true;
  }
  /** Return how often expressions use each column, by its id. */
  private static Map uses(List expressions) {
    Map out = new HashMap();
    for (int i = 0; i < expressions.size(); i++) count((Expression) expressions.get(i), out);
    return out;
  }
  private static void count(Expression e, Map out) {
    if (e instanceof Attribute) {
      Integer before = (Integer) out.get(((Attribute) e).exprId());
      out.put(
          ((Attribute) e).exprId(), Integer.valueOf(before == null ? 1 : before.intValue() + 1));
    }
    scala.collection.Iterator it = e.children().iterator();
    while (it.hasNext()) count((Expression) it.next(), out);
  }
  /** Replace columns by their definitions; each expression keeps its name and id. */
  private static List replace(List columns, Map definitions) {
    List out = new ArrayList();
    for (int i = 0; i < columns.size(); i++) {
      Expression e = (Expression) columns.get(i);
      boolean isComputed =
          e instanceof Attribute && definitions.containsKey(((Attribute) e).exprId());
      out.add(isComputed ? aliasOf((Attribute) e, definitions)
                         : IcebergPyRule.substitute(e, definitions));
    }
    return out;
  }
  private static Alias aliasOf(Attribute a, Map definitions) {
    return new Alias((Expression) definitions.get(a.exprId()), a.name(), a.exprId(), a.qualifier(),
        scala.Option.empty(), IcebergPyBridge.seq(new ArrayList()));
  }

  private static LogicalPlan withIds(DataSourceV2ScanRelation relation, Map renamed) {
    if (renamed.isEmpty()) return relation;
    List arguments = new ArrayList(CollectionConverters.asJava(relation.productIterator().toSeq()));
    arguments.set(2, substituted(relation.output(), renamed));
    // the keys of groups, and the order
    for (int i = 3; i <= 4; i++) {
      scala.Option expressions = (scala.Option) arguments.get(i);
      if (expressions.isDefined())
        arguments.set(i,
            scala.Option.apply(
                substituted((scala.collection.immutable.Seq) expressions.get(), renamed)));
    }
    return (LogicalPlan) relation.makeCopy(arguments.toArray());
  }
  private static scala.collection.immutable.Seq substituted(
      scala.collection.immutable.Seq expressions, Map renamed) {
    return IcebergPyBridge.seq(IcebergPyScanParts.substitute(
        new ArrayList(CollectionConverters.asJava(expressions)), renamed));
  }
}
