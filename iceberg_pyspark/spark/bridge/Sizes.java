// How large the rows of a plan are that Python made over an RDD: Spark takes what it does not know for too large to broadcast.

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeMap$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.LogicalRDD;
import scala.jdk.javaapi.CollectionConverters;

public class IcebergPySizes {
  /** The plan with its size said, if it stands on an RDD. */
  public Object sized(Object plan, long count) throws ReflectiveOperationException {
    LogicalPlan top = (LogicalPlan) plan;
    if (top.children().size() != 1 || !(top.children().head() instanceof LogicalRDD)) return plan;
    LogicalRDD rows = (LogicalRDD) top.children().head();
    long width = 8L;
    scala.collection.Iterator it = top.output().iterator();
    while (it.hasNext()) width += ((Attribute) it.next()).dataType().defaultSize();
    Object statistics = new org.apache.spark.sql.catalyst.plans.logical.Statistics(scala.math.BigInt.apply(count * width), scala.Option.empty(), AttributeMap$.MODULE$.empty(), false);
    List arguments = new ArrayList(CollectionConverters.asJava(rows.productIterator().toSeq()));
    int session = arguments.size();
    arguments.addAll(CollectionConverters.asJava(rows.otherCopyArgs()));
    arguments.set(session + 1, scala.Option.apply(statistics));
    Object made = LogicalRDD.class.getConstructors()[0].newInstance(arguments.toArray());
    // not by withNewChildren: an RDD equals itself, whatever its size
    List parts = new ArrayList(CollectionConverters.asJava(top.productIterator().toSeq()));
    parts.set(parts.indexOf(rows), made);
    return top.makeCopy(parts.toArray());
  }
}
