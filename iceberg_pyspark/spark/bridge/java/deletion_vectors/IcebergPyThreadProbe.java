import java.lang.ref.WeakReference;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeAndComment;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator;

/**
 * Keeps the last probe of a thread, for plans in which each row asks for a probe. Spark finds the
 * short source of this class faster than the source of all classes that read vectors, which is
 * compiled here.
 */
class IcebergPyThreadProbe {
  private static final ThreadLocal last = new ThreadLocal();

  /** Return the probe for a broadcast and the source that reads vectors; tasks share no objects. */
  static Object of(Object[] references) {
    WeakReference reference = (WeakReference) last.get();
    Object[] probe = reference == null ? null : (Object[]) reference.get();
    if (probe == null || probe[0] != references[0]) {
      // the full name, because the class around this one has the short name
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
