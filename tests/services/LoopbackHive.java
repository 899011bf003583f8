import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.IHMSHandler;
import org.apache.hadoop.hive.metastore.RetryingHMSHandler;
import org.apache.hadoop.hive.metastore.TSetIpAddressProcessor;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.TTransportFactory;

/** Runs a Hive metastore on 127.0.0.1 with a Derby database: LoopbackHive port folder. */
public final class LoopbackHive {
  public static void main(String[] arguments) throws Exception {
    int port = Integer.parseInt(arguments[0]);
    String folder = arguments[1];
    HiveConf conf = new HiveConf();
    conf.set("javax.jdo.option.ConnectionURL", "jdbc:derby:" + folder + "/metastore;create=true");
    conf.set("javax.jdo.option.ConnectionDriverName", "org.apache.derby.jdbc.EmbeddedDriver");
    conf.set("hive.metastore.warehouse.dir", "file:" + folder + "/hive-warehouse");
    conf.set("datanucleus.schema.autoCreateAll", "true");
    conf.set("hive.metastore.schema.verification", "false");
    conf.set("hive.metastore.try.direct.sql", "true"); // needed to compare expected parameters
    conf.set("hive.metastore.disallow.incompatible.col.type.changes", "false");
    conf.set("datanucleus.connectionPoolingType", "HikariCP");
    // On Derby, requests for locks wait for each other while each of them holds a connection. If
    // they hold all connections (10 by default), the one that they wait for gets none for 30 s.
    conf.set("datanucleus.connectionPool.maxPoolSize", "24");
    conf.set("hive.metastore.uris", "");
    HiveMetaStore.HMSHandler base = new HiveMetaStore.HMSHandler("loopback", conf, false);
    IHMSHandler handler = RetryingHMSHandler.getProxy(conf, base, true);
    // create the lock tables, as Hive's own schema scripts would
    TxnDbUtil.prepDb(conf);
    TServerSocket socket =
        new TServerSocket(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), port));
    TThreadPoolServer.Args settings = new TThreadPoolServer.Args(socket);
    settings.processor(new TSetIpAddressProcessor(handler));
    settings.transportFactory(new TTransportFactory());
    settings.protocolFactory(new TBinaryProtocol.Factory());
    settings.minWorkerThreads(4);
    settings.maxWorkerThreads(200);
    new TThreadPoolServer(settings).serve();
  }
}
