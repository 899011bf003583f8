import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.Scan;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.http.UriCompliance;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/**
 * Runs Iceberg's REST fixture over a JdbcCatalog on loopback only, because the fixture's own main
 * listens on every interface. Arguments: a port, then catalog properties as key=value. With
 * planning.files-per-answer, scan planning is asynchronous and each answer has at most that many
 * files.
 */
public class LoopbackRest {
  public static void main(String[] args) throws Exception {
    Map<String, String> properties = new HashMap<>();
    properties.put("catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog");
    properties.put("jdbc.schema-version", "V1");
    for (int i = 1; i < args.length; i++) {
      int equals = args[i].indexOf('=');
      properties.put(args[i].substring(0, equals), args[i].substring(equals + 1));
    }
    Catalog catalog = CatalogUtil.buildIcebergCatalog("rest", properties, new Configuration());
    ServletContextHandler context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    RESTCatalogServlet servlet = new RESTCatalogServlet(adapter(catalog, properties));
    context.addServlet(new ServletHolder(servlet), "/*");
    Server server = new Server();
    ServerConnector connector = new ServerConnector(server);
    connector.setHost("127.0.0.1");
    // names may contain percent signs, which Jetty refuses in a path by default
    connector.getConnectionFactory(HttpConnectionFactory.class)
        .getHttpConfiguration()
        .setUriCompliance(UriCompliance.UNSAFE);
    context.getServletHandler().setDecodeAmbiguousURIs(true);
    connector.setPort(Integer.parseInt(args[0]));
    server.addConnector(connector);
    server.setHandler(context);
    server.start();
    server.join();
  }

  private static RESTCatalogAdapter adapter(Catalog catalog, Map<String, String> properties) {
    String files = properties.get("planning.files-per-answer");
    if (files == null) {
      return new RESTCatalogAdapter(catalog);
    }
    return new RESTCatalogAdapter(catalog) {
      @Override
      protected PlanningBehavior planningBehavior() {
        return new PlanningBehavior() {
          @Override
          public int numberFileScanTasksPerPlanTask() {
            return Integer.parseInt(files);
          }

          @Override
          public boolean shouldPlanTableScanAsync(Scan<?, FileScanTask, ?> scan) {
            return true;
          }
        };
      }
    };
  }
}
