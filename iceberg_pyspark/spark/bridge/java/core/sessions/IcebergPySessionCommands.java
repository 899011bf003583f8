import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.PersistedView$;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.TableSpecBase;
import org.apache.spark.sql.catalyst.plans.logical.V2CreateTablePlan;
import org.apache.spark.sql.catalyst.util.StringUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.execution.command.AlterTableRenameCommand;
import org.apache.spark.sql.execution.command.CreateTableLikeCommand;
import org.apache.spark.sql.execution.command.CreateViewCommand;
import org.apache.spark.sql.execution.command.RunnableCommand;
import org.apache.spark.sql.execution.command.ShowTablesCommand;
import org.apache.spark.sql.execution.datasources.v2.ShowTablesExtendedExec;
import org.apache.spark.sql.execution.datasources.v2.V2SessionCatalog;
import org.apache.spark.unsafe.Platform;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Statements that Spark answers from its own tables, without asking `spark_catalog`: they list
 * Iceberg tables too, and none makes a table or view that an Iceberg table hides.
 */
class IcebergPySessionCommands {
  private static final String CATALOG = "spark_catalog";

  /** Return the rows that answer a statement, or null if Spark answers it. */
  static LogicalPlan answer(LogicalPlan plan) {
    if (plan instanceof V2CreateTablePlan) checkCatalog((V2CreateTablePlan) plan);
    if (!(plan instanceof RunnableCommand)) return null;
    SparkSession spark = IcebergPySessions.active();
    if (plan instanceof CreateTableLikeCommand) checkProvider((CreateTableLikeCommand) plan, spark);
    Object catalog = spark.sessionState().catalogManager().catalog(CATALOG);
    if (!(catalog instanceof iceberg_pyspark)) return null;
    iceberg_pyspark ours = (iceberg_pyspark) catalog;
    if (plan instanceof ShowTablesCommand) return show((ShowTablesCommand) plan, spark, ours);
    if (plan instanceof CreateTableLikeCommand)
      checkSource((CreateTableLikeCommand) plan, spark, ours);
    Identifier made = made(plan, spark);
    if (made == null || !ours.hasIcebergTable(made)) return null;
    checkNothingToDo(plan, made);
    return LocalRelation$.MODULE$.fromExternalRows(
        IcebergPyBridge.seq(new ArrayList()), IcebergPyBridge.seq(new ArrayList()));
  }

  /** Add our tables to Spark's; an Iceberg table has precedence over another of its name. */
  private static LogicalPlan show(
      ShowTablesCommand show, SparkSession spark, iceberg_pyspark catalog) {
    String db = database(show.databaseName(), spark);
    String[] namespace = new String[] {db};
    IcebergPyCatalog ours = catalog.icebergTables();
    if (show.partitionSpec().isDefined() || !ours.namespaceExists(namespace)) return null;
    String pattern = show.tableIdentifierPattern().isDefined()
        ? (String) show.tableIdentifierPattern().get()
        : "*";
    boolean isSparks = spark.sessionState().catalog().databaseExists(db);
    List rows = show.isExtended()
        ? details(show.output(), ours, IcebergPyBridge.list(namespace), pattern, !isSparks)
        : names(ours, db, pattern);
    Set found = new HashSet();
    for (int i = 0; i < rows.size(); i++) found.add(((Row) rows.get(i)).getString(1));
    List all = new ArrayList();
    if (isSparks) {
      List sparks = CollectionConverters.asJava(show.run(spark));
      for (int i = 0; i < sparks.size(); i++) {
        Row row = (Row) sparks.get(i);
        if (row.getBoolean(2) || !found.contains(row.getString(1))) all.add(row);
      }
    }
    all.addAll(rows);
    return LocalRelation$.MODULE$.fromExternalRows(show.output(), IcebergPyBridge.seq(all));
  }
  private static List names(IcebergPyCatalog catalog, String db, String pattern) {
    List tables = new ArrayList();
    try {
      Identifier[] all = catalog.listTables(new String[] {db});
      for (int i = 0; i < all.length; i++) tables.add(all[i].name());
    } catch (Exception e) {
      Platform.throwException(e);
    }
    List matching = CollectionConverters.asJava(
        (scala.collection.Seq) StringUtils.filterPattern(IcebergPyBridge.seq(tables), pattern));
    List rows = new ArrayList();
    for (int i = 0; i < matching.size(); i++)
      rows.add(RowFactory.create(new Object[] {db, matching.get(i), Boolean.FALSE}));
    return rows;
  }
  /** Describe our tables, and maybe temporary views, as Spark does for other catalogs. */
  static List details(scala.collection.immutable.Seq output, TableCatalog catalog, List namespace,
      String pattern, boolean temporaryViews) {
    InternalRow[] described =
        new ShowTablesExtendedExec(output, catalog, IcebergPyBridge.seq(namespace), pattern)
            .executeCollect();
    List rows = new ArrayList();
    for (int i = 0; i < described.length; i++) {
      boolean isTemporary = described[i].getBoolean(2);
      if (isTemporary && !temporaryViews) continue;
      rows.add(RowFactory.create(new Object[] {described[i].getUTF8String(0).toString(),
          described[i].getUTF8String(1).toString(), Boolean.valueOf(isTemporary),
          described[i].getUTF8String(3).toString()}));
    }
    return rows;
  }

  /** Return the name of the table or view that a statement makes; null for other statements. */
  private static Identifier made(LogicalPlan plan, SparkSession spark) {
    if (plan instanceof AlterTableRenameCommand) {
      AlterTableRenameCommand rename = (AlterTableRenameCommand) plan;
      return identifier(rename.newName().database().isDefined()
              ? rename.newName()
              : new TableIdentifier(rename.newName().table(), rename.oldName().database()),
          spark);
    }
    if (plan instanceof CreateViewCommand)
      return ((CreateViewCommand) plan).viewType() == PersistedView$.MODULE$
          ? identifier(((CreateViewCommand) plan).name(), spark)
          : null;
    if (plan instanceof CreateTableLikeCommand)
      return identifier(((CreateTableLikeCommand) plan).targetTable(), spark);
    // all others that create a table begin with its description; one of them is part of Hive
    Object first = plan.productArity() == 0 ? null : plan.productElement(0);
    return plan.getClass().getSimpleName().startsWith("Create") && first instanceof CatalogTable
        ? identifier(((CatalogTable) first).identifier(), spark)
        : null;
  }
  private static Identifier identifier(TableIdentifier name, SparkSession spark) {
    return Identifier.of(new String[] {database(name.database(), spark)}, name.table());
  }
  private static String database(scala.Option name, SparkSession spark) {
    return name.isDefined() ? (String) name.get()
                            : spark.sessionState().catalog().getCurrentDatabase();
  }

  /** Refuse a statement that makes a table or view, unless it accepts that one exists. */
  private static void checkNothingToDo(LogicalPlan plan, Identifier made) {
    boolean accepts = plan instanceof CreateViewCommand
        ? ((CreateViewCommand) plan).allowExisting()
        : plan instanceof CreateTableLikeCommand && ((CreateTableLikeCommand) plan).ifNotExists();
    SaveMode mode = null;
    for (int i = 0; i < plan.productArity(); i++) {
      Object argument = plan.productElement(i);
      if (argument instanceof SaveMode) mode = (SaveMode) argument;
      if (plan.productElement(0) instanceof CatalogTable && Boolean.TRUE.equals(argument))
        accepts = true;
    }
    if (accepts || mode == SaveMode.Ignore) return;
    if (mode == SaveMode.Append || mode == SaveMode.Overwrite)
      throw new IcebergPyUnsupportedFeatureException("table " + made
          + " is an Iceberg table, and saveAsTable writes one of Spark's own formats: use "
          + "format(\"iceberg\"), insertInto or writeTo");
    Platform.throwException(new TableAlreadyExistsException(made));
  }

  /** Refuse an Iceberg table where Spark's catalog would only keep its name. */
  private static void checkCatalog(V2CreateTablePlan plan) {
    Object name = plan.name();
    if (!(name instanceof ResolvedIdentifier)
        || !(((ResolvedIdentifier) name).catalog() instanceof V2SessionCatalog))
      return;
    scala.Option provider = scala.Option.empty();
    scala.Product parts = (scala.Product) (Object) plan;
    for (int i = 0; i < parts.productArity(); i++)
      if (parts.productElement(i) instanceof TableSpecBase)
        provider = ((TableSpecBase) parts.productElement(i)).provider();
    String format = provider.isDefined()
        ? (String) provider.get()
        : IcebergPySessions.active().sessionState().conf().defaultDataSourceName();
    if (iceberg_pyspark.isIceberg(format))
      refuse(((ResolvedIdentifier) name).identifier().toString(), format);
  }
  private static void refuse(String table, String format) {
    throw new IcebergPyUnsupportedFeatureException("table " + table + ": " + CATALOG
        + " is Spark's own catalog, which cannot keep a table USING " + format
        + "; name a catalog of iceberg_pyspark (<catalog>." + table
        + "), or set spark.sql.catalog." + CATALOG + " to iceberg_pyspark");
  }
  private static void checkProvider(CreateTableLikeCommand like, SparkSession spark) {
    if (like.provider().isEmpty() || !iceberg_pyspark.isIceberg((String) like.provider().get()))
      return;
    if (spark.sessionState().catalogManager().catalog(CATALOG) instanceof V2SessionCatalog)
      refuse(identifier(like.targetTable(), spark).toString(), (String) like.provider().get());
    refuseLike(like);
  }
  private static void checkSource(
      CreateTableLikeCommand like, SparkSession spark, iceberg_pyspark catalog) {
    if (!spark.sessionState().catalog().isTempView(like.sourceTable())
        && catalog.hasIcebergTable(identifier(like.sourceTable(), spark)))
      refuseLike(like);
  }
  private static void refuseLike(CreateTableLikeCommand like) {
    throw new IcebergPyUnsupportedFeatureException("table " + like.targetTable().unquotedString()
        + (": CREATE TABLE ... LIKE is for Spark's own tables alone; write CREATE TABLE ... USING "
            + "iceberg ")
        + "AS SELECT * FROM " + like.sourceTable().unquotedString() + " WHERE false");
  }
}
