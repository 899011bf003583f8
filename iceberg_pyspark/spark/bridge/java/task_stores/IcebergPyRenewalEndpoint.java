import org.apache.spark.rpc.IsolatedThreadSafeRpcEndpoint;
import org.apache.spark.rpc.RpcCallContext;
import org.apache.spark.rpc.RpcEnv;

/**
 * Handles the requests of tasks in a thread of its own, because the catalog's server may be slow.
 */
class IcebergPyRenewalEndpoint implements IsolatedThreadSafeRpcEndpoint {
  private final RpcEnv env;
  IcebergPyRenewalEndpoint(RpcEnv env) { this.env = env; }
  public RpcEnv rpcEnv() { return env; }
  public scala.PartialFunction receiveAndReply(RpcCallContext context) {
    return new IcebergPyRenewalResponse(context);
  }
}
