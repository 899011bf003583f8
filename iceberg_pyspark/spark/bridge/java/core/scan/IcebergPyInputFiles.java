import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.FileRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/** A projection that tells `DataFrame.inputFiles` which files are read below it, without a scan. */
public class IcebergPyInputFiles extends Project implements FileRelation {
  public IcebergPyInputFiles(scala.collection.immutable.Seq columns, LogicalPlan child) {
    super(columns, child);
  }
  public String[] inputFiles() {
    List out = new ArrayList();
    scala.collection.Iterator leaves = ((LogicalPlan) this).collectLeaves().iterator();
    while (leaves.hasNext()) {
      Object leaf = leaves.next();
      if (!(leaf instanceof DataSourceV2ScanRelation)) continue;
      Object table = ((DataSourceV2ScanRelation) leaf).relation().table();
      if (table instanceof IcebergPyFiles)
        out.addAll(Arrays.asList(((IcebergPyFiles) table).paths()));
    }
    return (String[]) out.toArray(new String[0]);
  }
}
