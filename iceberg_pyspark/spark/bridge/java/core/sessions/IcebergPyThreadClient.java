import java.io.IOException;
import java.net.Socket;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import javax.net.SocketFactory;

/**
 * A py4j client with a connection for each thread. A new connection closes the connections of
 * threads that have ended.
 *
 * py4j writes a text in pieces of 8 KB, and the network waits 40 ms with the second until Python
 * has confirmed the first. The connections of this client do not wait, and neither do those of
 * Python to Spark's JVM, of which py4j tells this client.
 */
class IcebergPyThreadClient extends py4j.PythonClient {
  private final List owners = new ArrayList();

  IcebergPyThreadClient(
      py4j.GatewayServer server, int port, java.net.InetAddress address, String token) {
    super(server.getGateway(), new ArrayList(), port, address, DEFAULT_MIN_CONNECTION_TIME,
        DEFAULT_MIN_CONNECTION_TIME_UNIT, SocketFactory.getDefault(), server, true, 0, token);
    py4j.ClientServerConnection current =
        ((py4j.PythonClient) server.getCallbackClient()).getPerThreadConnection();
    if (current != null) doNotWait(current.getSocket());
  }

  public void connectionStarted(py4j.Py4JServerConnection connection) {
    super.connectionStarted(connection);
    doNotWait(connection.getSocket());
  }
  protected Socket startClientSocket() throws IOException {
    Socket socket = super.startClientSocket();
    doNotWait(socket);
    return socket;
  }
  private static void doNotWait(Socket socket) {
    try {
      socket.setTcpNoDelay(true);
    } catch (SocketException e) {
      // it is closed
    }
  }

  public void setPerThreadConnection(py4j.ClientServerConnection connection) {
    super.setPerThreadConnection(connection);
    synchronized (owners) {
      Iterator it = owners.iterator();
      while (it.hasNext()) {
        Object[] owner = (Object[]) it.next();
        if (((Thread) owner[0]).isAlive()) continue;
        it.remove();
        drop((py4j.ClientServerConnection) owner[1]);
      }
      owners.add(new Object[] {Thread.currentThread(), connection});
    }
  }
  private void drop(py4j.ClientServerConnection connection) {
    lock.lock();
    try {
      connections.remove(connection);
    } finally {
      lock.unlock();
    }
    connection.shutdown(false);
  }
}
