import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.streaming.StreamingQueryListener;

/** Creates the new table of a query that has started; `toTable` has not returned yet. */
class IcebergPyStartListener extends StreamingQueryListener {
  private final SparkSession spark;
  IcebergPyStartListener(SparkSession spark) {
    super();
    this.spark = spark;
  }
  public void onQueryStarted(StreamingQueryListener.QueryStartedEvent event) {
    Object sink = IcebergPyInternals.sinkOf(spark, event.id().toString());
    if (sink instanceof IcebergPyNewSink) ((IcebergPyNewSink) sink).create();
  }
  public void onQueryProgress(StreamingQueryListener.QueryProgressEvent event) {}
  public void onQueryTerminated(StreamingQueryListener.QueryTerminatedEvent event) {}
}
