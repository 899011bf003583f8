import java.io.File;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.datanode.DataNodeFaultInjector;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;

/** Runs HDFS on 127.0.0.1, name node and data node in one process: LoopbackHdfs port folder. */
public final class LoopbackHdfs {
  public static void main(String[] arguments) throws Exception {
    int port = Integer.parseInt(arguments[0]);
    File folder = new File(arguments[1]);
    String any = "127.0.0.1:0";
    Configuration conf = new HdfsConfiguration();
    conf.set("fs.defaultFS", "hdfs://127.0.0.1:" + port);
    conf.set("dfs.namenode.rpc-address", "127.0.0.1:" + port);
    conf.set("dfs.namenode.http-address", any);
    conf.set("dfs.datanode.address", any);
    conf.set("dfs.datanode.ipc.address", any);
    conf.set("dfs.datanode.http.address", any);
    conf.set("dfs.datanode.hostname", "127.0.0.1");
    conf.set("dfs.namenode.name.dir", new File(folder, "names").toURI().toString());
    conf.set("dfs.datanode.data.dir", new File(folder, "data").toURI().toString());
    conf.set("dfs.replication", "1");
    conf.set("dfs.permissions.enabled", "false");
    conf.set("dfs.namenode.safemode.extension", "0");
    conf.set("dfs.namenode.edits.noeditlogchannelflush", "true");
    // a client that closes a file before the data node has reported its last block waits for half
    // a second, so the data node reports first
    DataNodeFaultInjector.set(
        new DataNodeFaultInjector() {
          @Override
          public void delaySendingAckToUpstream(String client) throws IOException {
            try {
              Thread.sleep(20);
            } catch (InterruptedException e) {
              throw new IOException(e);
            }
          }
        });
    DefaultMetricsSystem.setMiniClusterMode(
        true); // formatting and serving share the metrics system
    NameNode.format(conf);
    NameNode names = NameNode.createNameNode(new String[0], conf);
    DataNode data = DataNode.createDataNode(new String[0], conf);
    while (!data.isDatanodeFullyStarted() || names.isInSafeMode()) {
      Thread.sleep(50);
    }
    System.out.println("HDFS is ready");
    names.join();
  }
}
