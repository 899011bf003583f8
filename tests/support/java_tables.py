"""Read tables with Iceberg's Java library and without a Spark job: rows, plans, files, metadata.

Tests with many small questions to Java use this module; `tests.support.oracle` shows how Spark
reads a table. Rows are texts of exact values: `show_row` formats an Arrow row exactly as the class
in SOURCE formats a record, so that NaN, -0.0, nanoseconds and UUIDs compare too.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.expressions.json import predicate_to_json
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.sql_text.filters import parse_filter
from tests.support.oracle import Oracle, compile_java

_SEPARATOR = "\x1e"


@dataclass(frozen=True)
class PruningCounts:
    """Numbers of files for one filter: planned, with matching rows, and wrongly pruned."""

    planned: int
    with_matches: int
    lost: int


@dataclass(frozen=True)
class JavaTables:
    """Queries by Java on the tables of an oracle; `name` is a full name like java_sql.db.events."""

    oracle: Oracle
    helper: Any

    def rows(
        self,
        name: str,
        filter_json: str | None = None,
        ref: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> list[str]:
        """Return the matching rows in the form of `show_rows`, sorted."""
        column_names = None if columns is None else list(columns)
        return sorted(_split(self.helper.rows(self._table(name), filter_json, ref, column_names)))

    def planned_files(self, name: str, filter_json: str) -> list[str]:
        """Return the locations of the data files that Java would read for a filter, sorted."""
        return sorted(_split(self.helper.plannedFiles(self._table(name), filter_json)))

    def prune(self, name: str, filters: Sequence[str]) -> list[PruningCounts]:
        """Plan with each filter and count the planned, the matching and the lost files.

        A file matches if at least one of its rows matches, found by reading all rows.
        """
        count_texts = _split(self.helper.prune(self._table(name), list(filters)))
        return [PruningCounts(*map(int, text.split("/"))) for text in count_texts]

    def file_problems(self, name: str) -> list[str]:
        """Return the problems that Java finds in the live data files; an empty list means none.

        A problem is a row in a file of another partition, or a file at a location that Java would
        not choose.
        """
        return _split(self.helper.fileProblems(self._table(name)))

    def copy(self, source: str, target: str) -> None:
        """Copy the rows of each data file with Java's writer, file by file, in order."""
        self.helper.copy(self._table(source), self._table(target))

    def create(
        self,
        name: str,
        like: str,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create an empty table with Java: schema, spec, sort order and properties of `like`.

        `properties` are added to the properties of `like`.
        """
        _catalog, namespace, table = name.split(".")
        catalog = self._catalog(name)
        self.helper.create(catalog, namespace, table, self._table(like), dict(properties or {}))

    def parse_metadata(self, text: str) -> Any:
        """Parse table metadata with Java and return the JSON that Java writes for it."""
        parser = self.oracle.jvm.org.apache.iceberg.TableMetadataParser
        return json.loads(parser.toJson(parser.fromJson(text)))

    def _table(self, name: str) -> Any:
        return self.oracle.load_java_table(name)

    def _catalog(self, name: str) -> Any:
        spark_util = self.oracle.jvm.org.apache.iceberg.spark.Spark3Util
        return spark_util.loadIcebergCatalog(
            self.oracle.java_session, name.split(".", maxsplit=1)[0]
        )


def java_tables(oracle: Oracle) -> JavaTables:
    """Compile the Java helper class; once per session is enough."""
    return JavaTables(oracle, compile_java(oracle.spark, "TableHelper", SOURCE))


def filter_json(text: str, schema: Schema) -> str:
    """Return a filter as the JSON that Java parses; literals have the types of their columns."""
    return json.dumps(predicate_to_json(bind(parse_filter(text), schema)))


def show_rows(rows: pa.Table) -> list[str]:
    """Return the rows of an Arrow table as texts of exact values, sorted."""
    columns = [
        [_show(scalar) for scalar in column.combine_chunks()] if rows.num_rows else []
        for column in rows.columns
    ]
    return sorted("{" + "|".join(row) + "}" for row in zip(*columns, strict=True))


def _show(scalar: Any) -> str:
    if not scalar.is_valid:
        return "null"
    if isinstance(scalar, pa.ExtensionScalar):
        scalar = scalar.value
    t = pa.types
    type_ = scalar.type
    if t.is_struct(type_):
        return "{" + "|".join(_show(scalar[i]) for i in range(type_.num_fields)) + "}"
    if t.is_map(type_):
        pairs = [(pair["key"], pair["value"]) for pair in scalar.values]
        return "<" + "|".join(sorted(f"{_show(k)}={_show(v)}" for k, v in pairs)) + ">"
    if t.is_list(type_) or t.is_large_list(type_):
        return "[" + "|".join(_show(item) for item in scalar.values) + "]"
    if t.is_float32(type_):
        return struct.pack(">f", scalar.as_py()).hex()
    if t.is_float64(type_):
        return struct.pack(">d", scalar.as_py()).hex()
    if t.is_boolean(type_):
        return str(scalar.as_py()).lower()
    if t.is_string(type_) or t.is_large_string(type_):
        return f"'{scalar.as_py()}'"
    if t.is_binary(type_) or t.is_large_binary(type_) or t.is_fixed_size_binary(type_):
        return str(scalar.as_py().hex())
    if t.is_decimal(type_):
        return f"{scalar.as_py():f}"
    if t.is_timestamp(type_):
        per_second = 1_000_000 if type_.unit == "us" else 1_000_000_000
        seconds, rest = divmod(scalar.value, per_second)
        return f"{seconds}.{rest * (1_000_000_000 // per_second)}{'Z' if type_.tz else ''}"
    # integers, dates and times as their number
    return str(scalar.value if hasattr(scalar, "value") else scalar.as_py())


def _split(text: str) -> list[str]:
    return text.split(_SEPARATOR) if text else []


# Janino supports neither lambdas nor inference of type arguments, hence raw types and casts.
SOURCE = """
import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.file.Paths;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.PartitionKey;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableScan;
import org.apache.iceberg.TableUtil;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.GenericFileWriterFactory;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.InternalRecordWrapper;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetReaders;
import org.apache.iceberg.expressions.Evaluator;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.ExpressionParser;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.expressions.UnboundPredicate;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.parquet.Parquet;
import org.apache.iceberg.shaded.org.apache.parquet.schema.MessageType;
import org.apache.iceberg.types.Comparators;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;

public class TableHelper {
  static final char SEPARATOR = (char) 0x1e;

  public String rows(Table table, String filter, String ref, List columns) throws Exception {
    IcebergGenerics.ScanBuilder scan = IcebergGenerics.read(table).where(parse(table, filter));
    if (ref != null) {
      scan = scan.useSnapshot(((SnapshotRef) table.refs().get(ref)).snapshotId());
    }
    if (columns != null) { scan = scan.select((String[]) columns.toArray(new String[0])); }
    StringBuilder out = new StringBuilder();
    CloseableIterable records = scan.build();
    Iterator iterator = records.iterator();
    while (iterator.hasNext()) {
      if (out.length() > 0) { out.append(SEPARATOR); }
      // where deletes are applied, the position follows the columns
      Record record = (Record) iterator.next();
      int size = columns == null ? table.schema().columns().size() : columns.size();
      out.append(show(record, size));
    }
    records.close();
    return out.toString();
  }

  public String plannedFiles(Table table, String filter) throws Exception {
    StringBuilder out = new StringBuilder();
    List tasks = tasks((TableScan) table.newScan().filter(parse(table, filter)));
    for (int i = 0; i < tasks.size(); i++) {
      if (out.length() > 0) { out.append(SEPARATOR); }
      out.append(((FileScanTask) tasks.get(i)).file().location());
    }
    return out.toString();
  }

  public String prune(Table table, List filters) throws Exception {
    List tasks = tasks(table.newScan());
    InternalRecordWrapper wrapper = new InternalRecordWrapper(table.schema().asStruct());
    List contents = new ArrayList();
    for (int i = 0; i < tasks.size(); i++) {
      List content = new ArrayList();
      CloseableIterable records = open(table, (FileScanTask) tasks.get(i));
      Iterator iterator = records.iterator();
      while (iterator.hasNext()) { content.add(iterator.next()); }
      records.close();
      contents.add(content);
    }
    StringBuilder out = new StringBuilder();
    for (int f = 0; f < filters.size(); f++) {
      Expression filter = parse(table, (String) filters.get(f));
      Evaluator evaluator = new Evaluator(
          table.schema().asStruct(), matching(table, filter), true);
      List planned = tasks((TableScan) table.newScan().filter(filter));
      HashSet locations = new HashSet();
      for (int i = 0; i < planned.size(); i++) {
        locations.add(((FileScanTask) planned.get(i)).file().location());
      }
      int withMatches = 0;
      int lost = 0;
      for (int i = 0; i < tasks.size(); i++) {
        boolean matches = false;
        List content = (List) contents.get(i);
        for (int j = 0; j < content.size(); j++) {
          matches = matches || evaluator.eval(wrapper.wrap((Record) content.get(j)));
        }
        if (matches) { withMatches++; }
        if (matches && !locations.contains(((FileScanTask) tasks.get(i)).file().location())) {
          lost++;
        }
      }
      if (f > 0) { out.append(SEPARATOR); }
      out.append(locations.size() + "/" + withMatches + "/" + lost);
    }
    return out.toString();
  }

  // The evaluator takes null for less and NaN for greater than any value; a plan does not, nor does
  // SQL take null so.
  static Expression matching(Table table, Expression filter) {
    if (!(filter instanceof UnboundPredicate)) { return filter; }
    UnboundPredicate predicate = (UnboundPredicate) filter;
    if (predicate.op() == Expression.Operation.IS_NULL
        || predicate.op() == Expression.Operation.IS_NAN) {
      return filter;
    }
    String name = predicate.ref().name();
    Expression matching = Expressions.and(Expressions.notNull(name), filter);
    Type.TypeID type = table.schema().findField(name).type().typeId();
    boolean isFloat = type == Type.TypeID.FLOAT || type == Type.TypeID.DOUBLE;
    return isFloat ? Expressions.and(Expressions.notNaN(name), matching) : matching;
  }

  public String fileProblems(Table table) throws Exception {
    StringBuilder out = new StringBuilder();
    List tasks = tasks(table.newScan());
    for (int i = 0; i < tasks.size(); i++) {
      FileScanTask task = (FileScanTask) tasks.get(i);
      DataFile file = (DataFile) task.file();
      PartitionSpec spec = (PartitionSpec) table.specs().get(file.specId());
      String name = file.location().substring(file.location().lastIndexOf('/') + 1);
      // an object store layout without partition paths puts part of the hash before the name
      name = name.replaceFirst("^[01]{8}-", "");
      String expected = spec.isPartitioned()
          ? table.locationProvider().newDataLocation(spec, file.partition(), name)
          : table.locationProvider().newDataLocation(name);
      if (!expected.equals(file.location())) {
        out.append(SEPARATOR).append(file.location() + " would be " + expected);
      }
      PartitionKey key = new PartitionKey(spec, table.schema());
      InternalRecordWrapper wrapper = new InternalRecordWrapper(table.schema().asStruct());
      Comparator same = Comparators.forType(spec.partitionType());
      long count = 0;
      CloseableIterable records = open(table, task);
      Iterator iterator = records.iterator();
      while (iterator.hasNext()) {
        Record record = (Record) iterator.next();
        key.partition(wrapper.wrap(record));
        if (same.compare(key, file.partition()) != 0) {
          out.append(SEPARATOR).append(show(record) + " is in " + file.partition()
              + " and would be in " + key);
        }
        count++;
      }
      records.close();
      if (count != file.recordCount()) {
        out.append(SEPARATOR).append(file.location() + " has " + count + " rows, not "
            + file.recordCount());
      }
    }
    return out.length() == 0 ? "" : out.substring(1);
  }

  public void copy(Table source, Table target) throws Exception {
    GenericFileWriterFactory writers = new GenericFileWriterFactory.Builder(target).build();
    OutputFileFactory files = OutputFileFactory.builderFor(target, 0, 0L).build();
    AppendFiles append = target.newAppend();
    List tasks = tasks(source.newScan());
    for (int i = 0; i < tasks.size(); i++) {
      FileScanTask task = (FileScanTask) tasks.get(i);
      StructLike partition = target.spec().isPartitioned() ? task.file().partition() : null;
      DataWriter writer = writers.newDataWriter(
          files.newOutputFile(target.spec(), partition), target.spec(), partition);
      CloseableIterable records = open(source, task);
      Iterator iterator = records.iterator();
      while (iterator.hasNext()) { writer.write(iterator.next()); }
      records.close();
      writer.close();
      append.appendFile(writer.toDataFile());
    }
    append.commit();
  }

  public void create(Catalog catalog, String namespace, String name, Table like, Map properties) {
    Namespace parent = Namespace.of(new String[] {namespace});
    if (!((SupportsNamespaces) catalog).namespaceExists(parent)) {
      ((SupportsNamespaces) catalog).createNamespace(parent, new HashMap());
    }
    Map all = new HashMap(like.properties());
    all.put("format-version", String.valueOf(TableUtil.formatVersion(like)));
    all.putAll(properties);
    catalog.buildTable(TableIdentifier.of(parent, name), like.schema())
        .withPartitionSpec(like.spec())
        .withSortOrder(like.sortOrder())
        .withProperties(all)
        .create();
  }

  static Expression parse(Table table, String filter) {
    if (filter == null) { return Expressions.alwaysTrue(); }
    // With a schema it takes nanoseconds for microseconds; without one they stay text and exact.
    List fields = table.schema().columns();
    for (int i = 0; i < fields.size(); i++) {
      Types.NestedField field = (Types.NestedField) fields.get(i);
      if (field.type().typeId() == Type.TypeID.TIMESTAMP_NANO
          && filter.contains("\\"" + field.name() + "\\"")) {
        return ExpressionParser.fromJson(filter);
      }
    }
    return ExpressionParser.fromJson(filter, table.schema());
  }

  static List tasks(TableScan scan) throws Exception {
    List found = new ArrayList();
    CloseableIterable planned = scan.planFiles();
    Iterator iterator = planned.iterator();
    while (iterator.hasNext()) { found.add(iterator.next()); }
    planned.close();
    Collections.sort(found, new Comparator() {
      public int compare(Object a, Object b) {
        String left = ((FileScanTask) a).file().location();
        return left.compareTo(((FileScanTask) b).file().location());
      }
    });
    return found;
  }

  // The rows of the file alone: no deletes, no constants of its partition.
  static CloseableIterable open(final Table table, FileScanTask task) {
    return Parquet.read(table.io().newInputFile(task.file().location()))
        .project(table.schema())
        .createReaderFunc(new java.util.function.Function() {
          public Object apply(Object fileSchema) {
            return GenericParquetReaders.buildReader(table.schema(), (MessageType) fileSchema);
          }
        })
        .build();
  }

  static String show(Object value) {
    if (value == null) { return "null"; }
    if (value instanceof Record) { return show((Record) value, ((Record) value).size()); }
    if (value instanceof List) {
      List parts = new ArrayList();
      for (int i = 0; i < ((List) value).size(); i++) { parts.add(show(((List) value).get(i))); }
      return "[" + join(parts) + "]";
    }
    if (value instanceof Map) {
      List parts = new ArrayList();
      Iterator entries = ((Map) value).entrySet().iterator();
      while (entries.hasNext()) {
        Map.Entry entry = (Map.Entry) entries.next();
        parts.add(show(entry.getKey()) + "=" + show(entry.getValue()));
      }
      Collections.sort(parts);
      return "<" + join(parts) + ">";
    }
    if (value instanceof Float) {
      return String.format("%08x", new Object[] {
          Integer.valueOf(Float.floatToRawIntBits(((Float) value).floatValue()))});
    }
    if (value instanceof Double) {
      return String.format("%016x", new Object[] {
          Long.valueOf(Double.doubleToRawLongBits(((Double) value).doubleValue()))});
    }
    if (value instanceof CharSequence) { return "'" + value + "'"; }
    if (value instanceof ByteBuffer) {
      ByteBuffer copy = (ByteBuffer) ((ByteBuffer) value).duplicate();
      byte[] bytes = new byte[copy.remaining()];
      copy.get(bytes);
      return hex(bytes);
    }
    if (value instanceof byte[]) { return hex((byte[]) value); }
    if (value instanceof UUID) { return value.toString().replace("-", ""); }
    if (value instanceof BigDecimal) { return ((BigDecimal) value).toPlainString(); }
    if (value instanceof LocalDate) { return String.valueOf(((LocalDate) value).toEpochDay()); }
    if (value instanceof LocalTime) {
      return String.valueOf(((LocalTime) value).toNanoOfDay() / 1000L);
    }
    if (value instanceof LocalDateTime) {
      return instant(((LocalDateTime) value).atOffset(ZoneOffset.UTC));
    }
    if (value instanceof OffsetDateTime) { return instant((OffsetDateTime) value) + "Z"; }
    return value.toString();
  }

  static String show(Record record, int size) {
    List parts = new ArrayList();
    for (int i = 0; i < size; i++) { parts.add(show(record.get(i))); }
    return "{" + join(parts) + "}";
  }

  static String instant(OffsetDateTime value) {
    return value.toEpochSecond() + "." + value.getNano();
  }

  static String hex(byte[] bytes) {
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < bytes.length; i++) {
      out.append(String.format("%02x", new Object[] {Integer.valueOf(bytes[i] & 0xff)}));
    }
    return out.toString();
  }

  static String join(List parts) {
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < parts.size(); i++) {
      if (i > 0) { out.append('|'); }
      out.append(parts.get(i));
    }
    return out.toString();
  }
}
"""
