import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What Python gives as JSON, and in it objects of this JVM by the ids that py4j has for them:
 * given one by one they would be a call each.
 */
class IcebergPyObjects {
  /** Lists and maps as JSON has them, each reference replaced; `server` is py4j's. */
  static Object read(Object server, String json) {
    try {
      return resolve(((py4j.GatewayServer) server).getGateway(),
          IcebergPyBridge.JSON.readValue(json, Object.class));
    } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }
  private static Object resolve(py4j.Gateway gateway, Object value) {
    if (value instanceof Map) {
      if ("Object".equals(((Map) value).get("is")))
        return gateway.getObject((String) ((Map) value).get("id"));
      Map out = new LinkedHashMap();
      Iterator each = ((Map) value).entrySet().iterator();
      while (each.hasNext()) {
        Map.Entry one = (Map.Entry) each.next();
        out.put(one.getKey(), resolve(gateway, one.getValue()));
      }
      return out;
    }
    if (!(value instanceof List)) return value;
    List out = new ArrayList();
    for (int i = 0; i < ((List) value).size(); i++)
      out.add(resolve(gateway, ((List) value).get(i)));
    return out;
  }
}
