// Written from bridge/protocol by `make protocol`.
import java.util.List;
import java.util.Map;

/** The questions to Python, and what they hold. */
class IcebergPyQuestions {
  static IcebergPyOpenedCatalog catalogOpen(String session, String name, Map options) {
    return new IcebergPyOpenedCatalog(IcebergPyBridge.ask("catalog.open",
        IcebergPyBridge.arguments(
            new Object[] {"session", session, "name", name, "options", options})));
  }
  static IcebergPyNamespaces namespacesList(String catalog, List namespace) {
    return new IcebergPyNamespaces(IcebergPyBridge.ask("namespaces.list",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace})));
  }
  static IcebergPyExistence namespaceExists(String catalog, List namespace) {
    return new IcebergPyExistence(IcebergPyBridge.ask("namespace.exists",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace})));
  }
  static IcebergPyNamespaceProperties namespaceLoad(String catalog, List namespace) {
    return new IcebergPyNamespaceProperties(IcebergPyBridge.ask("namespace.load",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace})));
  }
  static void namespaceCreate(String catalog, List namespace, Map properties) {
    IcebergPyBridge.ask("namespace.create",
        IcebergPyBridge.arguments(
            new Object[] {"catalog", catalog, "namespace", namespace, "properties", properties}));
  }
  static void namespaceAlter(String catalog, List namespace, Map updates, List removals) {
    IcebergPyBridge.ask("namespace.alter",
        IcebergPyBridge.arguments(new Object[] {
            "catalog", catalog, "namespace", namespace, "updates", updates, "removals", removals}));
  }
  static void namespaceDrop(String catalog, List namespace, boolean cascade) {
    IcebergPyBridge.ask("namespace.drop",
        IcebergPyBridge.arguments(new Object[] {
            "catalog", catalog, "namespace", namespace, "cascade", Boolean.valueOf(cascade)}));
  }
  static IcebergPyTableNames tablesList(String catalog, List namespace) {
    return new IcebergPyTableNames(IcebergPyBridge.ask("tables.list",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace})));
  }
  static IcebergPyExistence tableExists(String catalog, List namespace, String name) {
    return new IcebergPyExistence(IcebergPyBridge.ask("table.exists",
        IcebergPyBridge.arguments(
            new Object[] {"catalog", catalog, "namespace", namespace, "name", name})));
  }
  static void tableInvalidate(String catalog, List namespace, String name) {
    IcebergPyBridge.ask("table.invalidate",
        IcebergPyBridge.arguments(
            new Object[] {"catalog", catalog, "namespace", namespace, "name", name}));
  }
  static IcebergPyTableFacts tableLoad(String catalog, List namespace, String name, String version,
      Number timestampUs, String wapBranch) {
    return new IcebergPyTableFacts(IcebergPyBridge.ask("table.load",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace, "name",
            name, "version", version, "timestamp_us", timestampUs, "wap_branch", wapBranch})));
  }
  static IcebergPyTableFacts tableSelect(String handle, Map options) {
    return new IcebergPyTableFacts(IcebergPyBridge.ask("table.select",
        IcebergPyBridge.arguments(new Object[] {"handle", handle, "options", options})));
  }
  static IcebergPyTableFacts tableCreate(String catalog, List namespace, String name, String schema,
      List defaults, List partitionedBy, Map properties) {
    return new IcebergPyTableFacts(IcebergPyBridge.ask("table.create",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace, "name",
            name, "schema", schema, "defaults", defaults, "partitioned_by", partitionedBy,
            "properties", properties})));
  }
  static IcebergPyTableFacts tableStage(String catalog, List namespace, String name, String schema,
      List defaults, List partitionedBy, Map properties, String mode) {
    return new IcebergPyTableFacts(IcebergPyBridge.ask("table.stage",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace, "name",
            name, "schema", schema, "defaults", defaults, "partitioned_by", partitionedBy,
            "properties", properties, "mode", mode})));
  }
  static void stagedCommit(String catalog, String handle) {
    IcebergPyBridge.ask("staged.commit",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "handle", handle}));
  }
  static void stagedAbort(String catalog, String handle) {
    IcebergPyBridge.ask("staged.abort",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "handle", handle}));
  }
  static IcebergPyTableFacts tableAlter(String catalog, List namespace, String name, List changes) {
    return new IcebergPyTableFacts(IcebergPyBridge.ask("table.alter",
        IcebergPyBridge.arguments(new Object[] {
            "catalog", catalog, "namespace", namespace, "name", name, "changes", changes})));
  }
  static IcebergPyDropResult tableDrop(String catalog, List namespace, String name, boolean purge) {
    return new IcebergPyDropResult(IcebergPyBridge.ask("table.drop",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace, "name",
            name, "purge", Boolean.valueOf(purge)})));
  }
  static void tableRename(
      String catalog, List namespace, String name, List toNamespace, String toName) {
    IcebergPyBridge.ask("table.rename",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace, "name",
            name, "to_namespace", toNamespace, "to_name", toName}));
  }
  static IcebergPyViewDefinition viewLoad(String catalog, List namespace, String name) {
    return new IcebergPyViewDefinition(IcebergPyBridge.ask("view.load",
        IcebergPyBridge.arguments(
            new Object[] {"catalog", catalog, "namespace", namespace, "name", name})));
  }
  static IcebergPyViewDescription viewDescribe(
      String catalog, List namespace, String name, String statement, String property) {
    return new IcebergPyViewDescription(IcebergPyBridge.ask("view.describe",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace, "name",
            name, "statement", statement, "property", property})));
  }
  static IcebergPyViewNames viewsList(String catalog, List namespace) {
    return new IcebergPyViewNames(IcebergPyBridge.ask("views.list",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace})));
  }
  static void viewChange(String catalog, List namespace, Map statement, Map query) {
    IcebergPyBridge.ask("view.change",
        IcebergPyBridge.arguments(new Object[] {
            "catalog", catalog, "namespace", namespace, "statement", statement, "query", query}));
  }
  static IcebergPyProcedureNames proceduresList(String catalog, List namespace) {
    return new IcebergPyProcedureNames(IcebergPyBridge.ask("procedures.list",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace})));
  }
  static IcebergPyProcedureDefinition procedureLoad(String catalog, List namespace, String name) {
    return new IcebergPyProcedureDefinition(IcebergPyBridge.ask("procedure.load",
        IcebergPyBridge.arguments(
            new Object[] {"catalog", catalog, "namespace", namespace, "name", name})));
  }
  static IcebergPyProcedureRows procedureCall(
      String catalog, String session, String name, Map arguments, List currentNamespace) {
    return new IcebergPyProcedureRows(IcebergPyBridge.ask("procedure.call",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "session", session, "name",
            name, "arguments", arguments, "current_namespace", currentNamespace})));
  }
  static IcebergPyPlannedScan scanPlan(Map scan) {
    return new IcebergPyPlannedScan(
        IcebergPyBridge.ask("scan.plan", IcebergPyBridge.arguments(new Object[] {"scan", scan})));
  }
  static IcebergPyRemainingFiles scanRuntimeFilter(Map scan, List filters) {
    return new IcebergPyRemainingFiles(IcebergPyBridge.ask("scan.runtime_filter",
        IcebergPyBridge.arguments(new Object[] {"scan", scan, "filters", filters})));
  }
  static IcebergPyKnownAggregates scanAggregate(
      Map table, String columns, List groups, List aggregates, Map condition) {
    return new IcebergPyKnownAggregates(IcebergPyBridge.ask("scan.aggregate",
        IcebergPyBridge.arguments(new Object[] {"table", table, "columns", columns, "groups",
            groups, "aggregates", aggregates, "condition", condition})));
  }
  static IcebergPyKnownStatistics scanStatistics(Map table) {
    return new IcebergPyKnownStatistics(IcebergPyBridge.ask(
        "scan.statistics", IcebergPyBridge.arguments(new Object[] {"table", table})));
  }
  static void writeRun(String session, String handle, String kind, Map options, Map condition,
      Map environment, Object plan) {
    IcebergPyBridge.ask("write.run",
        IcebergPyBridge.arguments(new Object[] {"session", session, "handle", handle, "kind", kind,
            "options", options, "condition", condition, "environment", environment}),
        plan);
  }
  static void sourceWrite(
      String session, Map options, boolean overwrite, boolean creates, Object plan) {
    IcebergPyBridge.ask("source.write",
        IcebergPyBridge.arguments(new Object[] {"session", session, "options", options, "overwrite",
            Boolean.valueOf(overwrite), "creates", Boolean.valueOf(creates)}),
        plan);
  }
  static void dmlRun(String session, List tablesRead, Object plan) {
    IcebergPyBridge.ask("dml.run",
        IcebergPyBridge.arguments(new Object[] {"session", session, "tables_read", tablesRead}),
        plan);
  }
  static void tableTruncate(String handle, Map environment) {
    IcebergPyBridge.ask("table.truncate",
        IcebergPyBridge.arguments(new Object[] {"handle", handle, "environment", environment}));
  }
  static IcebergPySessionOptions sourceOptions(String session, Map options) {
    return new IcebergPySessionOptions(IcebergPyBridge.ask("source.options",
        IcebergPyBridge.arguments(new Object[] {"session", session, "options", options})));
  }
  static IcebergPyExistingTable sourceTable(Map options) {
    return new IcebergPyExistingTable(IcebergPyBridge.ask(
        "source.table", IcebergPyBridge.arguments(new Object[] {"options", options})));
  }
  static IcebergPyHiddenColumns sourceHidden(String session, Map options) {
    return new IcebergPyHiddenColumns(IcebergPyBridge.ask("source.hidden",
        IcebergPyBridge.arguments(new Object[] {"session", session, "options", options})));
  }
  static IcebergPyRenewedCredentials credentialsRenew(String renewal) {
    return new IcebergPyRenewedCredentials(IcebergPyBridge.ask(
        "credentials.renew", IcebergPyBridge.arguments(new Object[] {"renewal", renewal})));
  }
  static IcebergPyReadStatement statementRead(String text) {
    return new IcebergPyReadStatement(IcebergPyBridge.ask(
        "statement.read", IcebergPyBridge.arguments(new Object[] {"text", text})));
  }
  static Map operator(String op, List args) {
    return IcebergPyBridge.arguments(new Object[] {"node", "operator", "op", op, "args", args});
  }
  static Map columnPath(List path) {
    return IcebergPyBridge.arguments(new Object[] {"node", "column", "path", path});
  }
  static Map literalValue(String type, Object value) {
    return IcebergPyBridge.arguments(
        new Object[] {"node", "literal", "type", type, "value", value});
  }
  static Map columnDefault(String sql, Map value) {
    return IcebergPyBridge.arguments(new Object[] {"sql", sql, "value", value});
  }
  static Map setProperty(String key, String value) {
    return IcebergPyBridge.arguments(
        new Object[] {"op", "set_property", "key", key, "value", value});
  }
  static Map removeProperty(String key) {
    return IcebergPyBridge.arguments(new Object[] {"op", "remove_property", "key", key});
  }
  static Map addColumn(List path, String type, boolean nullable, String comment, String position,
      Map columnDefault) {
    return IcebergPyBridge.arguments(new Object[] {"op", "add_column", "path", path, "type", type,
        "nullable", Boolean.valueOf(nullable), "comment", comment, "position", position,
        "column_default", columnDefault});
  }
  static Map deleteColumn(List path, boolean ifExists) {
    return IcebergPyBridge.arguments(
        new Object[] {"op", "delete_column", "path", path, "if_exists", Boolean.valueOf(ifExists)});
  }
  static Map renameColumn(List path, String name) {
    return IcebergPyBridge.arguments(
        new Object[] {"op", "rename_column", "path", path, "name", name});
  }
  static Map updateType(List path, String type) {
    return IcebergPyBridge.arguments(
        new Object[] {"op", "update_type", "path", path, "type", type});
  }
  static Map updateNullability(List path, boolean nullable) {
    return IcebergPyBridge.arguments(new Object[] {
        "op", "update_nullability", "path", path, "nullable", Boolean.valueOf(nullable)});
  }
  static Map updateComment(List path, String comment) {
    return IcebergPyBridge.arguments(
        new Object[] {"op", "update_comment", "path", path, "comment", comment});
  }
  static Map updatePosition(List path, String position) {
    return IcebergPyBridge.arguments(
        new Object[] {"op", "update_position", "path", path, "position", position});
  }
  static Map updateDefault(List path, Map columnDefault) {
    return IcebergPyBridge.arguments(
        new Object[] {"op", "update_default", "path", path, "column_default", columnDefault});
  }
  static Map otherChange(String kind) {
    return IcebergPyBridge.arguments(new Object[] {"op", "other", "kind", kind});
  }
  static Map viewStatement(String kind, String name, String columns, String comment, Map properties,
      List removals, List to) {
    return IcebergPyBridge.arguments(new Object[] {"kind", kind, "name", name, "columns", columns,
        "comment", comment, "properties", properties, "removals", removals, "to", to});
  }
  static Map analysedQuery(String sql, String schema, List temporary, boolean readsItself,
      String currentCatalog, List currentNamespace, String release) {
    return IcebergPyBridge.arguments(new Object[] {"sql", sql, "schema", schema, "temporary",
        temporary, "reads_itself", Boolean.valueOf(readsItself), "current_catalog", currentCatalog,
        "current_namespace", currentNamespace, "release", release});
  }
  static Map scannedTable(String session, String handle, String source, Map locations) {
    return IcebergPyBridge.arguments(new Object[] {
        "session", session, "handle", handle, "source", source, "locations", locations});
  }
  static Map rowCondition(Map condition, List columns) {
    return IcebergPyBridge.arguments(new Object[] {"condition", condition, "columns", columns});
  }
  static Map scanQuestion(
      Map table, String schema, List conditions, List needed, Number limit, boolean grouped) {
    return IcebergPyBridge.arguments(new Object[] {"table", table, "schema", schema, "conditions",
        conditions, "needed", needed, "limit", limit, "grouped", Boolean.valueOf(grouped)});
  }
  static Map aggregateFunction(String kind, String column) {
    return IcebergPyBridge.arguments(new Object[] {"kind", kind, "column", column});
  }
  static Map writeEnvironment(Map session, Map application) {
    return IcebergPyBridge.arguments(new Object[] {"session", session, "application", application});
  }
}
