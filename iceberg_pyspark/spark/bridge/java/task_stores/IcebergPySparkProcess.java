import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.rpc.RpcEnv;

/**
 * Spark's parts of this process, a driver or an executor. Since 4.3 `SparkEnv` has methods of types
 * that Spark does not ship. A compiler and reflection look at all methods, a method handle at one.
 */
class IcebergPySparkProcess {
  private final Object env;
  IcebergPySparkProcess() {
    try {
      env = MethodHandles.publicLookup()
                .findStatic(SparkEnv.class, "get", MethodType.methodType(SparkEnv.class))
                .invokeWithArguments(new Object[0]);
    } catch (Throwable e) {
      throw new IllegalStateException("SparkEnv.get: " + e);
    }
    if (env == null) throw new IllegalStateException("Spark has stopped");
  }

  RpcEnv rpcEnv() { return (RpcEnv) part("rpcEnv", RpcEnv.class); }
  SparkConf conf() { return (SparkConf) part("conf", SparkConf.class); }

  private Object part(String name, Class type) {
    try {
      return MethodHandles.publicLookup()
          .findVirtual(SparkEnv.class, name, MethodType.methodType(type))
          .invokeWithArguments(new Object[] {env});
    } catch (Throwable e) {
      throw new IllegalStateException("SparkEnv." + name + ": " + e);
    }
  }
}
