// Written from bridge/protocol by `make generate`.
import java.util.List;
import java.util.Map;

/** The requests to Python, and the messages inside them. */
class IcebergPyRequests {
  static IcebergPyCatalogHandle catalogOpen(String session, String name, Map options) {
    return new IcebergPyCatalogHandle(IcebergPyBridge.call("catalog.open",
        IcebergPyBridge.arguments(
            new Object[] {"session", session, "name", name, "options", options})));
  }
  static IcebergPyNamespaces namespacesList(String catalog, List namespace) {
    return new IcebergPyNamespaces(IcebergPyBridge.call("namespaces.list",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace})));
  }
  static IcebergPyExistence namespaceExists(String catalog, List namespace) {
    return new IcebergPyExistence(IcebergPyBridge.call("namespace.exists",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace})));
  }
  static IcebergPyNamespaceProperties namespaceLoad(String catalog, List namespace) {
    return new IcebergPyNamespaceProperties(IcebergPyBridge.call("namespace.load",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace})));
  }
  static void namespaceCreate(String catalog, List namespace, Map properties) {
    IcebergPyBridge.call("namespace.create",
        IcebergPyBridge.arguments(
            new Object[] {"catalog", catalog, "namespace", namespace, "properties", properties}));
  }
  static void namespaceAlter(String catalog, List namespace, Map updates, List removals) {
    IcebergPyBridge.call("namespace.alter",
        IcebergPyBridge.arguments(new Object[] {
            "catalog", catalog, "namespace", namespace, "updates", updates, "removals", removals}));
  }
  static void namespaceDrop(String catalog, List namespace, boolean cascade) {
    IcebergPyBridge.call("namespace.drop",
        IcebergPyBridge.arguments(new Object[] {
            "catalog", catalog, "namespace", namespace, "cascade", Boolean.valueOf(cascade)}));
  }
  static IcebergPyTableNames tablesList(String catalog, List namespace) {
    return new IcebergPyTableNames(IcebergPyBridge.call("tables.list",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace})));
  }
  static IcebergPyExistence tableExists(String catalog, List namespace, String name) {
    return new IcebergPyExistence(IcebergPyBridge.call("table.exists",
        IcebergPyBridge.arguments(
            new Object[] {"catalog", catalog, "namespace", namespace, "name", name})));
  }
  static void tableInvalidate(String catalog, List namespace, String name) {
    IcebergPyBridge.call("table.invalidate",
        IcebergPyBridge.arguments(
            new Object[] {"catalog", catalog, "namespace", namespace, "name", name}));
  }
  static IcebergPyTableDefinition tableLoad(String catalog, List namespace, String name,
      String version, Number timestampUs, String wapBranch) {
    return new IcebergPyTableDefinition(IcebergPyBridge.call("table.load",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace, "name",
            name, "version", version, "timestamp_us", timestampUs, "wap_branch", wapBranch})));
  }
  static IcebergPyTableDefinition changelogLoad(String catalog, List namespace, String name,
      String branch, String startVersion, String endVersion, Number startTimeUs, Number endTimeUs,
      boolean startInclusive, boolean endInclusive, String deduplication, boolean computeUpdates) {
    return new IcebergPyTableDefinition(IcebergPyBridge.call("changelog.load",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace, "name",
            name, "branch", branch, "start_version", startVersion, "end_version", endVersion,
            "start_time_us", startTimeUs, "end_time_us", endTimeUs, "start_inclusive",
            Boolean.valueOf(startInclusive), "end_inclusive", Boolean.valueOf(endInclusive),
            "deduplication", deduplication, "compute_updates", Boolean.valueOf(computeUpdates)})));
  }
  static IcebergPyTableDefinition tableSelect(String handle, Map options) {
    return new IcebergPyTableDefinition(IcebergPyBridge.call("table.select",
        IcebergPyBridge.arguments(new Object[] {"handle", handle, "options", options})));
  }
  static IcebergPyTableDefinition tableCreate(String catalog, List namespace, String name,
      String schema, List defaults, List partitionedBy, Map properties) {
    return new IcebergPyTableDefinition(IcebergPyBridge.call("table.create",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace, "name",
            name, "schema", schema, "defaults", defaults, "partitioned_by", partitionedBy,
            "properties", properties})));
  }
  static IcebergPyTableDefinition tableStage(String catalog, List namespace, String name,
      String schema, List defaults, List partitionedBy, Map properties, String mode) {
    return new IcebergPyTableDefinition(IcebergPyBridge.call("table.stage",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace, "name",
            name, "schema", schema, "defaults", defaults, "partitioned_by", partitionedBy,
            "properties", properties, "mode", mode})));
  }
  static void stagedCommit(String catalog, String handle) {
    IcebergPyBridge.call("staged.commit",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "handle", handle}));
  }
  static void stagedAbort(String catalog, String handle) {
    IcebergPyBridge.call("staged.abort",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "handle", handle}));
  }
  static IcebergPyTableDefinition tableAlter(
      String catalog, List namespace, String name, List changes, boolean caseSensitive) {
    return new IcebergPyTableDefinition(IcebergPyBridge.call("table.alter",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace, "name",
            name, "changes", changes, "case_sensitive", Boolean.valueOf(caseSensitive)})));
  }
  static IcebergPyDropResult tableDrop(String catalog, List namespace, String name, boolean purge) {
    return new IcebergPyDropResult(IcebergPyBridge.call("table.drop",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace, "name",
            name, "purge", Boolean.valueOf(purge)})));
  }
  static void tableRename(
      String catalog, List namespace, String name, List toNamespace, String toName) {
    IcebergPyBridge.call("table.rename",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace, "name",
            name, "to_namespace", toNamespace, "to_name", toName}));
  }
  static IcebergPyViewDefinition viewLoad(String catalog, List namespace, String name) {
    return new IcebergPyViewDefinition(IcebergPyBridge.call("view.load",
        IcebergPyBridge.arguments(
            new Object[] {"catalog", catalog, "namespace", namespace, "name", name})));
  }
  static IcebergPyViewDescription viewDescribe(
      String catalog, List namespace, String name, String statement, String property) {
    return new IcebergPyViewDescription(IcebergPyBridge.call("view.describe",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace, "name",
            name, "statement", statement, "property", property})));
  }
  static IcebergPyViewNames viewsList(String catalog, List namespace) {
    return new IcebergPyViewNames(IcebergPyBridge.call("views.list",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace})));
  }
  static void viewChange(String catalog, List namespace, Map statement, Map query) {
    IcebergPyBridge.call("view.change",
        IcebergPyBridge.arguments(new Object[] {
            "catalog", catalog, "namespace", namespace, "statement", statement, "query", query}));
  }
  static IcebergPyProcedureNames proceduresList(String catalog, List namespace) {
    return new IcebergPyProcedureNames(IcebergPyBridge.call("procedures.list",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "namespace", namespace})));
  }
  static IcebergPyProcedureDefinition procedureLoad(String catalog, List namespace, String name) {
    return new IcebergPyProcedureDefinition(IcebergPyBridge.call("procedure.load",
        IcebergPyBridge.arguments(
            new Object[] {"catalog", catalog, "namespace", namespace, "name", name})));
  }
  static IcebergPyProcedureRows procedureCall(
      String catalog, String session, String name, Map arguments, List currentNamespace) {
    return new IcebergPyProcedureRows(IcebergPyBridge.call("procedure.call",
        IcebergPyBridge.arguments(new Object[] {"catalog", catalog, "session", session, "name",
            name, "arguments", arguments, "current_namespace", currentNamespace})));
  }
  static IcebergPyPlannedScan scanPlan(Map scan) {
    return new IcebergPyPlannedScan(
        IcebergPyBridge.call("scan.plan", IcebergPyBridge.arguments(new Object[] {"scan", scan})));
  }
  static IcebergPyRemainingFiles scanRuntimeFilter(Map scan, List filters) {
    return new IcebergPyRemainingFiles(IcebergPyBridge.call("scan.runtime_filter",
        IcebergPyBridge.arguments(new Object[] {"scan", scan, "filters", filters})));
  }
  static IcebergPyFilterColumns scanFilterColumns(Map table, List columns) {
    return new IcebergPyFilterColumns(IcebergPyBridge.call("scan.filter_columns",
        IcebergPyBridge.arguments(new Object[] {"table", table, "columns", columns})));
  }
  static IcebergPyAggregateRows scanAggregate(
      Map table, String columns, List groups, List aggregates, Map condition) {
    return new IcebergPyAggregateRows(IcebergPyBridge.call("scan.aggregate",
        IcebergPyBridge.arguments(new Object[] {"table", table, "columns", columns, "groups",
            groups, "aggregates", aggregates, "condition", condition})));
  }
  static IcebergPyTableStatistics scanStatistics(Map table) {
    return new IcebergPyTableStatistics(IcebergPyBridge.call(
        "scan.statistics", IcebergPyBridge.arguments(new Object[] {"table", table})));
  }
  static IcebergPyStreamHandle streamOpen(
      String session, String handle, Map options, Map locations) {
    return new IcebergPyStreamHandle(IcebergPyBridge.call("stream.open",
        IcebergPyBridge.arguments(new Object[] {
            "session", session, "handle", handle, "options", options, "locations", locations})));
  }
  static IcebergPyStreamPlace streamBegin(String stream) {
    return new IcebergPyStreamPlace(IcebergPyBridge.call(
        "stream.begin", IcebergPyBridge.arguments(new Object[] {"stream", stream})));
  }
  static IcebergPyStreamPlace streamNext(
      String stream, String start, String until, boolean limited) {
    return new IcebergPyStreamPlace(IcebergPyBridge.call("stream.next",
        IcebergPyBridge.arguments(new Object[] {"stream", stream, "start", start, "until", until,
            "limited", Boolean.valueOf(limited)})));
  }
  static IcebergPyStreamPlace streamEnd(String stream) {
    return new IcebergPyStreamPlace(IcebergPyBridge.call(
        "stream.end", IcebergPyBridge.arguments(new Object[] {"stream", stream})));
  }
  static IcebergPyStreamBacklog streamPending(String stream, String offset) {
    return new IcebergPyStreamBacklog(IcebergPyBridge.call("stream.pending",
        IcebergPyBridge.arguments(new Object[] {"stream", stream, "offset", offset})));
  }
  static void streamClose(String stream) {
    IcebergPyBridge.call(
        "stream.close", IcebergPyBridge.arguments(new Object[] {"stream", stream}));
  }
  static void writeRun(String session, String handle, String kind, Map options, Map condition,
      Map environment, Object plan) {
    IcebergPyBridge.call("write.run",
        IcebergPyBridge.arguments(new Object[] {"session", session, "handle", handle, "kind", kind,
            "options", options, "condition", condition, "environment", environment}),
        plan);
  }
  static IcebergPyEpochRows epochWrite(String session, String handle, String query, long epoch,
      String mode, boolean stateful, Map options, Map environment, Object plan) {
    return new IcebergPyEpochRows(IcebergPyBridge.call("epoch.write",
        IcebergPyBridge.arguments(new Object[] {"session", session, "handle", handle, "query",
            query, "epoch", Long.valueOf(epoch), "mode", mode, "stateful",
            Boolean.valueOf(stateful), "options", options, "environment", environment}),
        plan));
  }
  static void sourceWrite(
      String session, Map options, boolean overwrite, boolean creates, Object plan) {
    IcebergPyBridge.call("source.write",
        IcebergPyBridge.arguments(new Object[] {"session", session, "options", options, "overwrite",
            Boolean.valueOf(overwrite), "creates", Boolean.valueOf(creates)}),
        plan);
  }
  static void dmlRun(String session, List referencedTables, Object plan) {
    IcebergPyBridge.call("dml.run",
        IcebergPyBridge.arguments(
            new Object[] {"session", session, "referenced_tables", referencedTables}),
        plan);
  }
  static void tableTruncate(String handle, Map environment) {
    IcebergPyBridge.call("table.truncate",
        IcebergPyBridge.arguments(new Object[] {"handle", handle, "environment", environment}));
  }
  static IcebergPySessionOptions sourceOptions(String session, Map options) {
    return new IcebergPySessionOptions(IcebergPyBridge.call("source.options",
        IcebergPyBridge.arguments(new Object[] {"session", session, "options", options})));
  }
  static IcebergPyExistingTable sourceTable(Map options) {
    return new IcebergPyExistingTable(IcebergPyBridge.call(
        "source.table", IcebergPyBridge.arguments(new Object[] {"options", options})));
  }
  static IcebergPyHiddenColumns sourceHiddenColumns(String session, Map options) {
    return new IcebergPyHiddenColumns(IcebergPyBridge.call("source.hidden_columns",
        IcebergPyBridge.arguments(new Object[] {"session", session, "options", options})));
  }
  static IcebergPyRenewedCredentials credentialsRenew(String renewal) {
    return new IcebergPyRenewedCredentials(IcebergPyBridge.call(
        "credentials.renew", IcebergPyBridge.arguments(new Object[] {"renewal", renewal})));
  }
  static IcebergPyParsedStatement statementParse(String text) {
    return new IcebergPyParsedStatement(IcebergPyBridge.call(
        "statement.parse", IcebergPyBridge.arguments(new Object[] {"text", text})));
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
  static Map viewStatement(String kind, String name, String columns, String comment, Map properties,
      List removals, List newName) {
    return IcebergPyBridge.arguments(new Object[] {"kind", kind, "name", name, "columns", columns,
        "comment", comment, "properties", properties, "removals", removals, "new_name", newName});
  }
  static Map analysedQuery(String sql, String schema, List temporaryObjects, String currentCatalog,
      List currentNamespace, String release) {
    return IcebergPyBridge.arguments(new Object[] {"sql", sql, "schema", schema,
        "temporary_objects", temporaryObjects, "current_catalog", currentCatalog,
        "current_namespace", currentNamespace, "release", release});
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
  static Map scannedTable(String session, String handle, String source, Map locations) {
    return IcebergPyBridge.arguments(new Object[] {
        "session", session, "handle", handle, "source", source, "locations", locations});
  }
  static Map rowCondition(Map condition, List columns) {
    return IcebergPyBridge.arguments(new Object[] {"condition", condition, "columns", columns});
  }
  static Map streamBatch(String stream, String start, String end) {
    return IcebergPyBridge.arguments(new Object[] {"stream", stream, "start", start, "end", end});
  }
  static Map rowOrder(String column, boolean descending, boolean nullsFirst) {
    return IcebergPyBridge.arguments(new Object[] {"column", column, "descending",
        Boolean.valueOf(descending), "nulls_first", Boolean.valueOf(nullsFirst)});
  }
  static Map scanDefinition(Map table, String schema, List conditions, List requiredColumns,
      Number limit, Map order, boolean grouped, List files, Map batch) {
    return IcebergPyBridge.arguments(new Object[] {"table", table, "schema", schema, "conditions",
        conditions, "required_columns", requiredColumns, "limit", limit, "order", order, "grouped",
        Boolean.valueOf(grouped), "files", files, "batch", batch});
  }
  static Map aggregateFunction(String kind, String column) {
    return IcebergPyBridge.arguments(new Object[] {"kind", kind, "column", column});
  }
  static Map writeEnvironment(Map session, Map application) {
    return IcebergPyBridge.arguments(new Object[] {"session", session, "application", application});
  }
}
