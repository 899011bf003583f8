import java.io.IOException;
import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;

/** A task of a job that only removes rows: it returns what its rows touch. */
public class IcebergPyTouchedTask extends scala.runtime.AbstractFunction1 implements Serializable {
  public Object apply(Object rows) {
    scala.collection.Iterator each = (scala.collection.Iterator) rows;
    IcebergPyTouchedRows touched = new IcebergPyTouchedRows(0);
    while (each.hasNext()) touched.add((InternalRow) each.next());
    try {
      return touched.describe();
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }
}
