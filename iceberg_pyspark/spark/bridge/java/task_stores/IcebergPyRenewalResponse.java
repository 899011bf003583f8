import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.rpc.RpcCallContext;

/** The response to one request: the result of `IcebergPyRenewedOptions.driverResponse`. */
class IcebergPyRenewalResponse extends scala.runtime.AbstractPartialFunction {
  private final RpcCallContext context;
  IcebergPyRenewalResponse(RpcCallContext context) { this.context = context; }
  public boolean isDefinedAt(Object request) { return request instanceof String; }
  public Object applyOrElse(Object request, scala.Function1 otherwise) {
    if (!isDefinedAt(request)) return otherwise.apply(request);
    context.reply(response((String) request));
    return scala.runtime.BoxedUnit.UNIT;
  }

  private static String[] response(String renewal) {
    try {
      IcebergPyRenewedCredentials renewed = IcebergPyRequests.credentialsRenew(renewal);
      Number end = renewed.expiresAtMs();
      List response = new ArrayList();
      response.add(String.valueOf(end == null ? Long.MAX_VALUE : end.longValue()));
      Iterator options = renewed.options().entrySet().iterator();
      while (options.hasNext()) {
        Map.Entry option = (Map.Entry) options.next();
        response.add(option.getKey());
        response.add(option.getValue());
      }
      return (String[]) response.toArray(new String[0]);
    } catch (Exception e) {
      // the next line of an error has only the name of its class in Python
      return new String[] {String.valueOf(e.getMessage()).split("\n")[0]};
    }
  }
}
