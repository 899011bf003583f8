import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads JSON from Python in which py4j's object ids refer to objects of this JVM: passing the
 * objects one by one would take a call for each.
 */
class IcebergPyObjects {
  /** Return the lists and maps of the JSON with all references replaced; `server` is py4j's. */
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
