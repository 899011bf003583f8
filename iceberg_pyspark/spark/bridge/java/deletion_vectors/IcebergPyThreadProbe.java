import java.lang.ref.WeakReference;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeAndComment;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator;

/**
 * The probe that a thread made last, for plans in which each row asks for one: Spark finds a short
 * source faster than all that reads vectors, which it compiles here.
 */
class IcebergPyThreadProbe {
  private static final ThreadLocal last = new ThreadLocal();

  /** Of the broadcast and the source of what reads vectors; a task has objects of its own. */
  static Object of(Object[] references) {
    WeakReference reference = (WeakReference) last.get();
    Object[] probe = reference == null ? null : (Object[]) reference.get();
    if (probe == null || probe[0] != references[0]) {
      // by its whole name: the class around this one has the short one
      org.apache.spark.sql.catalyst.expressions.codegen.GeneratedClass generatedClass =
          (org.apache.spark.sql.catalyst.expressions.codegen.GeneratedClass) CodeGenerator
              .compile((CodeAndComment) references[1])
              ._1();
      probe = new Object[] {references[0], generatedClass.generate(references)};
      last.set(new WeakReference(probe));
    }
    return probe[1];
  }
}
