import java.util.List;
import javax.net.SocketFactory;
import org.apache.spark.unsafe.Platform;

/**
 * Calls the one function behind the port that callback_port.py opens, as py4j calls its proxies,
 * with a token that only both processes know.
 */
public class IcebergPyCallback {
  private final py4j.Gateway gateway;
  private final py4j.CallbackClient client;
  private final String target;

  /** `secrets` is the path of a file whose two lines are the token and the function's name. */
  public IcebergPyCallback(Object server, String address, int port, String secrets)
      throws java.io.IOException {
    List lines = java.nio.file.Files.readAllLines(java.nio.file.Paths.get(secrets, new String[0]));
    String token = (String) lines.get(0);
    target = (String) lines.get(1);
    py4j.GatewayServer gatewayServer = (py4j.GatewayServer) server;
    gateway = gatewayServer.getGateway();
    java.net.InetAddress at = java.net.InetAddress.getByName(address);
    // in this mode of py4j, the thread that waits for a response also serves the calls back
    if (gatewayServer.getCallbackClient() instanceof py4j.PythonClient)
      client = new IcebergPyThreadClient(gatewayServer, port, at, token);
    else
      client =
          new py4j.CallbackClient(port, at, token, py4j.CallbackClient.DEFAULT_MIN_CONNECTION_TIME,
              py4j.CallbackClient.DEFAULT_MIN_CONNECTION_TIME_UNIT, SocketFactory.getDefault(),
              true, 0);
  }

  Object call(String operation, Object argument) {
    StringBuilder command = new StringBuilder("c\n").append(target).append("\nhandle\n");
    command.append(gateway.getReturnObject(operation).getCommandPart()).append('\n');
    command.append(gateway.getReturnObject(argument).getCommandPart()).append("\ne\n");
    try {
      return py4j.Protocol.getReturnValue(client.sendCommand(command.toString()), gateway);
    } catch (Throwable e) {
      Platform.throwException(e);
      return null;
    }
  }

  public void close() { client.shutdown(); }
}
