import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.internal.io.FileCommitProtocol;
import org.apache.spark.memory.MemoryMode;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;

/** The private parts of Spark that read and write files, like those of `IcebergPyInternals`. */
public class IcebergPyFileInternals {
  private static final String WRITER =
      "org.apache.spark.sql.execution.datasources.FileFormatWriter";
  private static final Class[] WRITER_PARAMETERS =
      new Class[] {org.apache.spark.sql.classic.SparkSession.class, SparkPlan.class,
          FileFormat.class, FileCommitProtocol.class, null, Configuration.class,
          scala.collection.immutable.Seq.class, scala.Option.class,
          scala.collection.immutable.Seq.class, scala.collection.immutable.Map.class, Integer.TYPE};

  private static final Class[] SCAN_PARAMETERS = new Class[] {
      org.apache.spark.sql.classic.SparkSession.class, Configuration.class, null, StructType.class,
      StructType.class, StructType.class, org.apache.spark.sql.sources.Filter[].class,
      CaseInsensitiveStringMap.class, scala.Option.class, scala.collection.immutable.Seq.class,
      scala.collection.immutable.Seq.class};

  // ---- parquet_scan: the constructor of Spark's scan, since 4.1 with variant extractions

  /** Create Spark's scan from the first eleven arguments of its constructor. */
  static Object parquetScan(Object[] firstArguments) {
    try {
      Constructor make = parquetScan();
      Class[] parameterTypes = make.getParameterTypes();
      Object[] all = new Object[parameterTypes.length];
      for (int i = 0; i < all.length; i++)
        all[i] = i < firstArguments.length
            ? firstArguments[i]
            : Array.newInstance(parameterTypes[i].getComponentType(), 0);
      return make.newInstance(all);
    } catch (InvocationTargetException e) {
      Platform.throwException(e.getCause());
      return null;
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }
  static Constructor parquetScan() throws ReflectiveOperationException {
    String name = "org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScan";
    Constructor[] all = IcebergPyInternals.classNamed(name).getConstructors();
    for (int i = 0; i < all.length; i++) {
      Class[] parameterTypes = all[i].getParameterTypes();
      boolean matches = parameterTypes.length >= SCAN_PARAMETERS.length;
      for (int p = 0; matches && p < SCAN_PARAMETERS.length; p++)
        matches =
            SCAN_PARAMETERS[p] == null || parameterTypes[p].isAssignableFrom(SCAN_PARAMETERS[p]);
      for (int p = SCAN_PARAMETERS.length; matches && p < parameterTypes.length; p++)
        matches = parameterTypes[p].isArray();
      if (matches) return all[i];
    }
    throw new NoSuchMethodException(name + " has no constructor of the arguments known here");
  }

  // ---- variant_fields: how a schema for Spark's Parquet scan marks a field of a variant

  static boolean hasVariantFields() {
    try {
      variantKeys();
      return true;
    } catch (ReflectiveOperationException e) {
      return false;
    } catch (LinkageError e) {
      return false;
    }
  }
  /** Return the metadata of a column that is a field of a variant. */
  static Metadata variantField(String path, boolean failOnError, String zone) {
    try {
      String[] keys = variantKeys();
      return new MetadataBuilder()
          .putMetadata(keys[0],
              new MetadataBuilder()
                  .putString(keys[1], path)
                  .putBoolean(keys[2], failOnError)
                  .putString(keys[3], zone)
                  .build())
          .build();
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }
  static String[] variantKeys() throws ReflectiveOperationException {
    String[] methods =
        new String[] {"METADATA_KEY", "PATH_KEY", "FAIL_ON_ERROR_KEY", "TIME_ZONE_ID_KEY"};
    String[] keys = new String[methods.length];
    Class type =
        IcebergPyInternals.classNamed("org.apache.spark.sql.execution.datasources.VariantMetadata");
    for (int i = 0; i < keys.length; i++)
      keys[i] = (String) IcebergPyInternals.method(type, methods[i], new Class[0])
                    .invoke(null, new Object[0]);
    return keys;
  }

  // ---- annotated_columns: files with logical types that Parquet 1.15 ends at with a null pointer

  static void annotatedColumns() throws ReflectiveOperationException {
    Class type = IcebergPyInternals.classNamed("org.apache.parquet.format.LogicalType");
    IcebergPyInternals.method(type, "isSetVARIANT", new Class[0]);
    IcebergPyInternals.method(type, "isSetGEOMETRY", new Class[0]);
    IcebergPyInternals.method(type, "isSetGEOGRAPHY", new Class[0]);
  }

  // ---- parquet_readers: the settings of the readers of Parquet splits in tasks

  /** Return the settings of readers of a Parquet scan; null if the release keeps them elsewhere. */
  static SQLConf settingsOf(Object readers) {
    try {
      if (readers.getClass() != parquetReaders().getDeclaringClass()) return null;
      return (SQLConf) ((scala.Product) readers).productElement(0);
    } catch (ReflectiveOperationException e) {
      return null;
    } catch (LinkageError e) {
      return null;
    }
  }
  /** Return a copy of readers that have settings, with other settings. */
  static Object withSettings(Object readers, SQLConf settings) {
    try {
      scala.Product product = (scala.Product) readers;
      Object[] arguments = new Object[product.productArity()];
      for (int i = 0; i < arguments.length; i++) arguments[i] = product.productElement(i);
      arguments[0] = settings;
      return parquetReaders().newInstance(arguments);
    } catch (InvocationTargetException e) {
      Platform.throwException(e.getCause());
      return null;
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }
  static Constructor parquetReaders() throws ReflectiveOperationException {
    String name =
        "org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory";
    Constructor[] all = IcebergPyInternals.classNamed(name).getConstructors();
    if (all.length == 1 && scala.Product.class.isAssignableFrom(all[0].getDeclaringClass())
        && all[0].getParameterTypes()[0] == SQLConf.class)
      return all[0];
    throw new NoSuchMethodException(name + " has no settings as its first argument");
  }

  // ---- orc_readers: the readers of ORC splits in tasks

  /**
   * Create readers of columns by name, and of constants after them; filters may skip row groups.
   * `options` are those of a DataFrameReader.
   */
  static Object orcReaders(SQLConf conf, Object hadoop, StructType columns, StructType facts,
      org.apache.spark.sql.sources.Filter[] filters, scala.collection.immutable.Map options) {
    try {
      Constructor make = orcReaders();
      Object orcOptions = orcOptions().newInstance(new Object[] {options, conf});
      return make.newInstance(new Object[] {conf, hadoop, columns, columns, facts, filters,
          scala.Option.empty(), orcOptions,
          conf.offHeapColumnVectorEnabled() ? MemoryMode.OFF_HEAP : MemoryMode.ON_HEAP});
    } catch (InvocationTargetException e) {
      Platform.throwException(e.getCause());
      return null;
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }
  static Constructor orcReaders() throws ReflectiveOperationException {
    return IcebergPyInternals.constructor(
        IcebergPyInternals.classNamed("org.apache.spark.sql.execution.datasources.v2.orc"
            + ".OrcPartitionReaderFactory"),
        new Class[] {SQLConf.class, Broadcast.class, StructType.class, StructType.class,
            StructType.class, org.apache.spark.sql.sources.Filter[].class, scala.Option.class,
            orcOptions().getDeclaringClass(), MemoryMode.class});
  }
  private static Constructor orcOptions() throws ReflectiveOperationException {
    return IcebergPyInternals.constructor(
        IcebergPyInternals.classNamed("org.apache.spark.sql.execution.datasources.orc.OrcOptions"),
        new Class[] {scala.collection.immutable.Map.class, SQLConf.class});
  }

  // ---- orc_zones: ORC's name of a time with a zone, which Spark's reader parses as a type

  /** Check for the parser's part of the type `timestamp with local time zone`. */
  static void zonedOrcType() throws ReflectiveOperationException {
    IcebergPyInternals.classNamed(
        "org.apache.spark.sql.catalyst.parser.SqlBaseParser$WithLocalTimeZoneContext");
  }

  // ---- parquet_writer: FileFormatWriter.write, with 11 arguments and newer ones with defaults

  /** Run the job that writes files of a format, with the first eleven arguments. */
  static Object writeFiles(Object[] firstArguments) {
    try {
      Method write = parquetWriter();
      Object writer = module(WRITER);
      Object[] all = new Object[write.getParameterTypes().length];
      for (int i = 0; i < all.length; i++)
        all[i] = i < firstArguments.length ? firstArguments[i]
                                           : defaultOf(write, i).invoke(writer, new Object[0]);
      return write.invoke(writer, all);
    } catch (InvocationTargetException e) {
      Platform.throwException(e.getCause());
      return null;
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }
  static Method parquetWriter() throws ReflectiveOperationException {
    Method[] all = IcebergPyInternals.classNamed(WRITER + "$").getMethods();
    for (int i = 0; i < all.length; i++) {
      if (!all[i].getName().equals("write") || Modifier.isStatic(all[i].getModifiers())) continue;
      Class[] parameterTypes = all[i].getParameterTypes();
      boolean matches = parameterTypes.length >= WRITER_PARAMETERS.length;
      for (int p = 0; matches && p < WRITER_PARAMETERS.length; p++)
        matches = WRITER_PARAMETERS[p] == null
            || parameterTypes[p].isAssignableFrom(WRITER_PARAMETERS[p]);
      for (int p = WRITER_PARAMETERS.length; matches && p < parameterTypes.length; p++)
        defaultOf(all[i], p);
      if (matches) return all[i];
    }
    throw new NoSuchMethodException(WRITER + ".write of the arguments known here");
  }
  private static Method defaultOf(Method method, int argument) throws ReflectiveOperationException {
    return IcebergPyInternals.method(
        method.getDeclaringClass(), method.getName() + "$default$" + (argument + 1), new Class[0]);
  }

  private static Object module(String name) throws ReflectiveOperationException {
    return IcebergPyInternals.classNamed(name + "$").getField("MODULE$").get(null);
  }
}
