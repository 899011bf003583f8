// The bridge between Spark's JVM and Python: it passes questions on and holds no Iceberg rule.
// Compiled by the Janino inside Spark when a session is installed (compiler.py), hence raw types,
// casts and no lambdas.

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.unsafe.Platform;

/**
 * Questions to Python: an operation and its arguments as JSON, or JVM objects where a plan is
 * asked for.
 */
public class IcebergPyBridge {
  static volatile IcebergPyCallback python;
  static final ObjectMapper JSON = new ObjectMapper();

  /**
   * Ask, and raise what Python raised: values pass; a text "error", class, message does not, nor
   * what a job of Spark's threw.
   */
  static Object ask(String operation, Object argument) {
    Object answer = answered(operation, argument);
    if (answer instanceof String && ((String) answer).startsWith("error\n"))
      raise((String) answer, new HashMap());
    if (answer instanceof Throwable) Platform.throwException((Throwable) answer);
    return answer;
  }

  static String json(Map argument) {
    try {
      return JSON.writeValueAsString(argument);
    } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }

  static Map askMap(String operation, Map argument) {
    try {
      String answer = (String) answered(operation, JSON.writeValueAsString(argument));
      if (answer != null && answer.startsWith("error\n")) raise(answer, argument);
      return answer == null ? null : (Map) JSON.readValue(answer, Map.class);
    } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }

  private static Object answered(String operation, Object argument) {
    IcebergPyCallback answering = python;
    if (answering == null)
      throw new IllegalStateException(
          "iceberg_pyspark is not installed in this process: call iceberg_pyspark.install(spark)");
    return answering.ask(operation, argument);
  }

  /** An error of Python's as Spark's own class of it, or with the message that Python gave. */
  static void raise(String answer, Map question) {
    String[] parts = answer.split("\n", 3);
    String kind = parts[1];
    String[] namespace = strings(question.get("namespace"));
    String name = (String) question.get("name");
    if (kind.equals("NoSuchTableError") && name != null)
      Platform.throwException(new NoSuchTableException(Identifier.of(namespace, name)));
    if (kind.equals("TableAlreadyExistsError") && name != null) {
      boolean renamed = question.containsKey("to_name");
      Platform.throwException(
          new org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException(renamed
                  ? Identifier.of(
                        strings(question.get("to_namespace")), (String) question.get("to_name"))
                  : Identifier.of(namespace, name)));
    }
    if (kind.equals("NoSuchNamespaceError"))
      Platform.throwException(new NoSuchNamespaceException(
          question.containsKey("to_name") ? strings(question.get("to_namespace")) : namespace));
    if (kind.equals("NamespaceAlreadyExistsError"))
      Platform.throwException(
          new org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException(namespace));
    if (kind.equals("NamespaceNotEmptyError"))
      Platform.throwException(
          new org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException(namespace));
    if (kind.equals("InvalidRequestError") || kind.equals("NoSuchSnapshotError"))
      throw new IcebergPyInvalid(parts[2]);
    if (kind.equals("UnsupportedFeatureError")) throw new IcebergPyUnsupported(parts[2]);
    Platform.throwException(new org.apache.spark.sql.execution.QueryExecutionException(
        kind.isEmpty() ? parts[2] : parts[2] + "\n(iceberg_pyspark.errors." + kind + ")", null));
  }

  private static String[] strings(Object list) {
    if (list == null) return new String[0];
    return (String[]) ((List) list).toArray(new String[((List) list).size()]);
  }

  static Map arguments(Object[] pairs) {
    Map map = new LinkedHashMap();
    for (int i = 0; i < pairs.length; i += 2) map.put(pairs[i], pairs[i + 1]);
    return map;
  }

  /** The handle of the session that asks; Python may ask for the session by it. */
  static String session() {
    return IcebergPySessions.handleOf(org.apache.spark.sql.classic.SparkSession.active()).text;
  }

  static scala.collection.immutable.Seq seq(List list) {
    return (scala.collection.immutable.Seq) scala.jdk.javaapi.CollectionConverters.asScala(list)
        .toSeq();
  }

  static List list(Object[] array) { return new ArrayList(Arrays.asList(array)); }
}
