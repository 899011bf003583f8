// The bridge between Spark's JVM and Python: it passes requests on and holds no Iceberg rule.
// Compiled by the Janino inside Spark when a session is installed (java_classes.py), hence raw
// types, casts and no lambdas.

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.unsafe.Platform;

/** Sends requests to Python as JSON, and has the helpers that our other classes share. */
public class IcebergPyBridge {
  static volatile IcebergPyCallback callback;
  static final ObjectMapper JSON = new ObjectMapper();

  /** Call Python, and throw what Python raised; only `IcebergPyRequests` uses this method. */
  static Map call(String operation, Map request) { return call(operation, request, null); }
  /** Call with a plan, which is sent beside the request; the response's plans are in `parts`. */
  static Map call(String operation, Map request, Object plan) {
    IcebergPyCallback python = callback;
    if (python == null)
      throw new IllegalStateException(
          "iceberg_pyspark is not installed in this process: call iceberg_pyspark.install(spark)");
    String text = json(request);
    Object response =
        python.call(operation, plan == null ? (Object) text : list(new Object[] {text, plan}));
    if (response instanceof Throwable) Platform.throwException((Throwable) response);
    if (!(response instanceof List)) return responseOrError(values((String) response));
    List all = (List) response;
    Map fields = responseOrError(values((String) all.get(0)));
    fields.put("parts", all.subList(1, all.size()));
    return fields;
  }

  static String json(Object value) {
    try {
      return JSON.writeValueAsString(value);
    } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }
  static Map values(String json) {
    try {
      return (Map) JSON.readValue(json, Map.class);
    } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Return the response; throw Spark's exception for an error, or one with Python's message. */
  private static Map responseOrError(Map response) {
    IcebergPyFailure failure = new IcebergPyFailure(response);
    String kind = failure.error();
    if (kind == null) return response;
    String[] namespace =
        (String[]) failure.namespace().toArray(new String[failure.namespace().size()]);
    Identifier table = failure.name() == null ? null : Identifier.of(namespace, failure.name());
    if (kind.equals("NoSuchTableError") && table != null)
      Platform.throwException(new NoSuchTableException(table));
    if (kind.equals("TableAlreadyExistsError") && table != null)
      Platform.throwException(
          new org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException(table));
    if (kind.equals("NoSuchViewError") && table != null)
      Platform.throwException(
          new org.apache.spark.sql.catalyst.analysis.NoSuchViewException(table));
    if (kind.equals("ViewAlreadyExistsError") && table != null)
      Platform.throwException(
          new org.apache.spark.sql.catalyst.analysis.ViewAlreadyExistsException(table));
    if (kind.equals("NoSuchNamespaceError"))
      Platform.throwException(new NoSuchNamespaceException(namespace));
    if (kind.equals("NamespaceAlreadyExistsError"))
      Platform.throwException(
          new org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException(namespace));
    if (kind.equals("NamespaceNotEmptyError"))
      Platform.throwException(
          new org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException(namespace));
    String message = failure.message();
    if (kind.equals("InvalidRequestError") || kind.equals("NoSuchSnapshotError"))
      throw new IcebergPyInvalidRequestException(message);
    if (kind.equals("UnsupportedFeatureError"))
      throw new IcebergPyUnsupportedFeatureException(message);
    Platform.throwException(new org.apache.spark.sql.execution.QueryExecutionException(
        kind.isEmpty() ? message : message + "\n(iceberg_pyspark.errors." + kind + ")", null));
    return null;
  }

  static Map arguments(Object[] pairs) {
    Map map = new LinkedHashMap();
    for (int i = 0; i < pairs.length; i += 2) map.put(pairs[i], pairs[i + 1]);
    return map;
  }

  /** The handle of the active session, by which Python refers to the session. */
  static String session() { return IcebergPySessions.handleOf(IcebergPySessions.active()).text; }

  /** Quote a column name so that Spark can parse it, whatever characters it contains. */
  static String quote(String name) { return "`" + name.replace("`", "``") + "`"; }

  static scala.collection.immutable.Seq seq(List list) {
    return (scala.collection.immutable.Seq) scala.jdk.javaapi.CollectionConverters.asScala(list)
        .toSeq();
  }

  static List list(Object[] array) { return new ArrayList(Arrays.asList(array)); }
}
