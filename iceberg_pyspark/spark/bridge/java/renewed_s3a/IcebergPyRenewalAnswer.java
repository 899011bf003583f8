import org.apache.spark.rpc.RpcCallContext;

/** The answer to one request: what `IcebergPyRenewedKeys.answerOfDriver` returns. */
class IcebergPyRenewalAnswer extends scala.runtime.AbstractPartialFunction {
  private final RpcCallContext context;
  IcebergPyRenewalAnswer(RpcCallContext context) { this.context = context; }
  public boolean isDefinedAt(Object request) { return request instanceof String; }
  public Object applyOrElse(Object request, scala.Function1 otherwise) {
    if (!isDefinedAt(request)) return otherwise.apply(request);
    context.reply(answer((String) request));
    return scala.runtime.BoxedUnit.UNIT;
  }

  private static String[] answer(String renewal) {
    try {
      IcebergPyRenewedCredentials renewed = IcebergPyQuestions.credentialsRenew(renewal);
      Number end = renewed.expiresAtMs();
      return new String[] {renewed.accessKeyId(), renewed.secretAccessKey(), renewed.sessionToken(),
          String.valueOf(end == null ? Long.MAX_VALUE : end.longValue())};
    } catch (Exception e) {
      // the next line of an error has only the name of its class in Python
      return new String[] {String.valueOf(e.getMessage()).split("\n")[0]};
    }
  }
}
