"""The oracle: Iceberg's own Java runtime inside a Spark session, to write and read tables with.

`oracle_jars` finds or downloads its jars; tests call `Oracle`. Both catalogs are in places that our
own code can open too, a folder and a SQLite file: `java_hadoop` is Java's HadoopCatalog, `java_sql`
its JdbcCatalog (schema V1, catalog name "java_sql"). Neither catalog caches, so both see our
commits at once.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType, _make_type_verifier

from tests.support.rows import PlainRow, spark_rows
from tests.support.spark_sessions import (
    LOCAL_FILES,
    SPARK_HOME,
    spark_environment,
    start_session,
)

PYSPARK_OF_THE_ORACLE = "4.1."
ORACLE_VERSION = "1.12.0"
ARTIFACTS = (
    f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{ORACLE_VERSION}",
    "org.xerial:sqlite-jdbc:3.54.1.0",
    "org.postgresql:postgresql:42.7.8",
)
JARS = Path(__file__).parents[2] / ".oracle"


class OracleUnavailableError(Exception):
    """The oracle cannot run here; the message says what is missing."""


@dataclass(frozen=True)
class Oracle:
    """Java's Iceberg in this process: we read tables that Java wrote, and Java reads ours."""

    spark: SparkSession
    warehouse: Path
    """The warehouse of `java_hadoop`, whose tables are at <warehouse>/<namespace>/<table>."""
    sql_warehouse: Path
    """The warehouse of `java_sql`, whose tables are at <sql_warehouse>/<namespace>/<table>."""
    sql_file: Path
    """The SQLite file of `java_sql`; its URI is sqlite:///<sql_file>."""
    delete_writer: Any
    """An instance of the class in DELETE_WRITER_SOURCE."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # Hypothesis prints the arguments of a failed example. It would look for this method on each
        # field, and a Java object claims to have every method: the call fails and hides the error.
        printer.text(repr(self))

    def sql(self, text: str) -> DataFrame:
        """Run one SQL statement."""
        return self.spark.sql(text)

    def table_rows(self, name: str) -> list[PlainRow]:
        """Read a whole table through Java, in the form of tests.support.rows, sorted."""
        return spark_rows(self.spark.table(name).collect())

    def load_java_table(self, name: str) -> Any:
        """Return the org.apache.iceberg.Table (through py4j) for a name like java_sql.db.events."""
        spark_util = self.jvm.org.apache.iceberg.spark.Spark3Util
        return spark_util.loadIcebergTable(self.java_session, name)

    def data_files(self, name: str) -> list[str]:
        """Return the locations of the live data files, sorted."""
        rows = self.sql(f"SELECT file_path FROM {name}.data_files").collect()
        return sorted(row.file_path for row in rows)

    def write_equality_deletes(
        self,
        name: str,
        columns: Sequence[str],
        rows: Iterable[tuple[Any, ...]],
        partition: tuple[Any, ...] | None = None,
        *,
        spec_id: int | None = None,
    ) -> str:
        """Commit one equality delete file and return its location; Spark itself never writes one.

        `columns` may name nested fields as a.b. `partition` has the transformed values of the spec
        (the table's current spec unless `spec_id` is given) as Spark shows them: days are dates.
        """
        table = self.load_java_table(name)
        spec = table.spec() if spec_id is None else table.specs()[spec_id]
        types = [(column, table.schema().findField(column).type()) for column in columns]
        written: str = self.delete_writer.writeEqualityDeletes(
            table,
            spec,
            list(columns),
            self._java_rows(types, rows),
            self._partition(spec, partition),
        )
        return written

    def write_position_deletes(
        self,
        name: str,
        positions: Iterable[tuple[str, int]],
        partition: tuple[Any, ...] | None = None,
    ) -> str:
        """Commit (data file location, row position) pairs; return the delete file's location.

        A v2 table gets a position delete file; a v3 table gets a Puffin file with a deletion vector
        for each data file, and none of the data files may have a deletion vector yet.
        """
        table = self.load_java_table(name)
        spec = table.spec()
        paths, rows = zip(*sorted(positions), strict=True)
        written: str = self.delete_writer.writePositionDeletes(
            table, spec, list(paths), list(rows), self._partition(spec, partition)
        )
        return written

    @property
    def jvm(self) -> Any:
        """The JVM of the session, for calls by py4j: jvm.org.apache.iceberg..."""
        return self.spark._jvm

    @property
    def java_session(self) -> Any:
        """The JVM's own SparkSession."""
        return self.spark._jsparkSession

    def _partition(self, spec: Any, values: tuple[Any, ...] | None) -> Any:
        fields = list(spec.partitionType().fields())
        if len(fields) != len(values or ()):
            raise ValueError(f"{len(fields)} partition values needed for {spec}, not {values}")
        if values is None:
            return None
        return self._java_rows([(field.name(), field.type()) for field in fields], [values])[0]

    def _java_rows(self, types: Iterable[tuple[str, Any]], rows: Iterable[tuple[Any, ...]]) -> Any:
        """Convert Python values to Spark rows in the JVM, with the class of each type.

        Integers passed through py4j itself would become an Integer or a Long depending on their
        size.
        """
        convert = self.jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert
        fields = [
            {
                "name": name,
                "type": json.loads(convert(iceberg_type).json()),
                "nullable": True,
                "metadata": {},
            }
            for name, iceberg_type in types
        ]
        schema = StructType.fromJson({"type": "struct", "fields": fields})
        verify = _make_type_verifier(schema)
        values = []
        for row in rows:
            verify(row)
            values.append(schema.toInternal(row))
        # Like createDataFrame, but without Python workers that would check each row again.
        serde = self.jvm.SerDeUtil
        pickled = self.spark.sparkContext.parallelize(values, 1)._jrdd
        converted = serde.toJavaArray(serde.pythonToJava(pickled, True)).rdd()
        java_time = "spark.sql.datetime.java8API.enabled"
        self.spark.conf.set(java_time, "true")
        try:
            frame = self.java_session.applySchemaToPythonRDD(converted, schema.json())
            return frame.collectAsList()
        finally:
            self.spark.conf.unset(java_time)


def start_oracle(
    scratch: Path, conf: Mapping[str, str] | None = None, *, more_jars: Sequence[Path] = ()
) -> Oracle:
    """Start a session with the runtime and with both catalogs in `scratch`; the caller stops it.

    `conf` overrides the settings, which suit short tests; `more_jars` are behind the runtime.
    """
    if not pyspark.__version__.startswith(PYSPARK_OF_THE_ORACLE):
        raise OracleUnavailableError(
            f"Iceberg's runtime is for pyspark {PYSPARK_OF_THE_ORACLE}x, this is "
            f"{pyspark.__version__}: run it in .venv-oracle"
        )
    jars = oracle_jars()
    warehouse, sql_warehouse = scratch / "java_hadoop", scratch / "java_sql"
    sql_warehouse.mkdir()
    sql_file = scratch / "java_sql.db"
    catalog_class = "org.apache.iceberg.spark.SparkCatalog"
    extensions = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    spark = start_session(
        scratch,
        {
            "spark.sql.extensions": extensions,
            "spark.sql.catalog.java_hadoop": catalog_class,
            "spark.sql.catalog.java_hadoop.type": "hadoop",
            "spark.sql.catalog.java_hadoop.warehouse": str(warehouse),
            "spark.sql.catalog.java_hadoop.cache-enabled": "false",
            "spark.sql.catalog.java_sql": catalog_class,
            "spark.sql.catalog.java_sql.type": "jdbc",
            "spark.sql.catalog.java_sql.uri": f"jdbc:sqlite:{sql_file}",
            "spark.sql.catalog.java_sql.jdbc.schema-version": "V1",
            "spark.sql.catalog.java_sql.warehouse": str(sql_warehouse),
            "spark.sql.catalog.java_sql.cache-enabled": "false",
            **(conf or {}),
        },
        jars=[*jars, *more_jars],
    )
    return Oracle(
        spark=spark,
        warehouse=warehouse,
        sql_warehouse=sql_warehouse,
        sql_file=sql_file,
        delete_writer=compile_java(spark, "DeleteWriter", DELETE_WRITER_SOURCE),
    )


def oracle_jars() -> list[Path]:
    """Return the jars in `.oracle`; download missing jars with Maven or Spark's own Ivy."""
    bring_local_files()
    return jars_of(ARTIFACTS)


def bring_local_files() -> None:
    """Download the faster local file system for Spark, if it is available."""
    with suppress(OracleUnavailableError):
        jars_of([LOCAL_FILES])


def jars_of(artifacts: Sequence[str]) -> list[Path]:
    """Return the jars of artifacts; raise `OracleUnavailableError` if one is unavailable."""
    jars = [JARS / jar_name(artifact) for artifact in artifacts]
    missing = [a for a, jar in zip(artifacts, jars, strict=True) if not jar.exists()]
    if missing:
        JARS.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=JARS) as folder:
            bring_jars(missing, Path(folder))
    return jars


def bring_jars(artifacts: Sequence[str], folder: Path) -> None:
    """Download artifacts into `folder`, then move each jar into place: runs may overlap."""
    try:
        if shutil.which("mvn"):
            copy = [
                "mvn",
                "--quiet",
                "--batch-mode",
                "dependency:copy",
                f"-DoutputDirectory={folder}",
            ]
            for artifact in artifacts:
                _run_download([*copy, f"-Dartifact={artifact}"])
        else:
            nothing = folder / "nothing.py"
            nothing.touch()
            ivy = ["--conf", f"spark.jars.ivy={folder}", "--packages", ",".join(artifacts)]
            submit = str(SPARK_HOME / "bin/spark-submit")
            _run_download([submit, "--master", "local[1]", *ivy, str(nothing)])
        for artifact in artifacts:
            # Ivy stores them in jars/ and prefixes their names with the group.
            result = next(folder.rglob(f"*{jar_name(artifact)}"))
            result.replace(JARS / jar_name(artifact))
    except (OSError, subprocess.SubprocessError, StopIteration) as error:
        tool = "mvn" if shutil.which("mvn") else "spark-submit --packages"
        raise OracleUnavailableError(
            f"{tool} could not download {', '.join(artifacts)}: {type(error).__name__}"
        ) from error


def _run_download(command: Sequence[str]) -> None:
    """Run a command that downloads; pytest shows its output if the test fails."""
    subprocess.run(command, env=spark_environment(), stdout=sys.stderr, timeout=600, check=True)


def jar_name(artifact: str) -> str:
    """Return the file name of a Maven artifact."""
    _group, name, version = artifact.split(":")
    return f"{name}-{version}.jar"


def compile_java(spark: SparkSession, class_name: str, source: str) -> Any:
    """Compile one class with the Janino inside Spark and return an instance of it."""
    jvm: Any = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(class_name).newInstance()


# Janino supports neither lambdas nor inference of type arguments, hence raw types and casts.
DELETE_WRITER_SOURCE = """
import java.nio.ByteBuffer;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.List;
import java.util.UUID;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.PartitionData;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Schema;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableUtil;
import org.apache.iceberg.data.GenericFileWriterFactory;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.InternalRecordWrapper;
import org.apache.iceberg.deletes.BaseDVFileWriter;
import org.apache.iceberg.deletes.EqualityDeleteWriter;
import org.apache.iceberg.deletes.PositionDelete;
import org.apache.iceberg.deletes.PositionDeleteWriter;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.Row;

public class DeleteWriter {

  public String writeEqualityDeletes(
      Table table, PartitionSpec spec, List columns, List rows, Row partition) throws Exception {
    Schema schema = table.schema().select(columns);
    int[] fieldIds = new int[columns.size()];
    for (int i = 0; i < fieldIds.length; i++) {
      fieldIds[i] = table.schema().findField((String) columns.get(i)).fieldId();
    }
    GenericFileWriterFactory writers = new GenericFileWriterFactory.Builder(table)
        .deleteFileFormat(FileFormat.PARQUET)
        .equalityFieldIds(fieldIds)
        .equalityDeleteRowSchema(schema)
        .build();
    StructLike where = partitionData(spec, partition);
    EqualityDeleteWriter writer = writers.newEqualityDeleteWriter(
        files(table, FileFormat.PARQUET).newOutputFile(spec, where), spec, where);
    for (int i = 0; i < rows.size(); i++) {
      GenericRecord record = GenericRecord.create(schema);
      for (int j = 0; j < fieldIds.length; j++) {
        set(record, ((String) columns.get(j)).split("\\\\."), 0, ((Row) rows.get(i)).get(j));
      }
      writer.write(record);
    }
    writer.close();
    return commit(table, writer.toDeleteFile());
  }

  public String writePositionDeletes(
      Table table, PartitionSpec spec, List paths, List positions, Row partition) throws Exception {
    StructLike where = partitionData(spec, partition);
    if (TableUtil.formatVersion(table) >= 3) {
      java.util.function.Function noPrevious = new java.util.function.Function() {
        public Object apply(Object path) { return null; }
      };
      BaseDVFileWriter writer = new BaseDVFileWriter(files(table, FileFormat.PUFFIN), noPrevious);
      for (int i = 0; i < paths.size(); i++) {
        writer.delete((String) paths.get(i), ((Number) positions.get(i)).longValue(), spec, where);
      }
      writer.close();
      RowDelta change = table.newRowDelta();
      List written = writer.result().deleteFiles();
      for (int i = 0; i < written.size(); i++) { change.addDeletes((DeleteFile) written.get(i)); }
      change.commit();
      return ((DeleteFile) written.get(0)).location();
    }
    GenericFileWriterFactory writers = new GenericFileWriterFactory.Builder(table)
        .deleteFileFormat(FileFormat.PARQUET)
        .build();
    PositionDeleteWriter writer = writers.newPositionDeleteWriter(
        files(table, FileFormat.PARQUET).newOutputFile(spec, where), spec, where);
    PositionDelete delete = PositionDelete.create();
    for (int i = 0; i < paths.size(); i++) {
      writer.write(
          delete.set((String) paths.get(i), ((Number) positions.get(i)).longValue()));
    }
    writer.close();
    return commit(table, writer.toDeleteFile());
  }

  static OutputFileFactory files(Table table, FileFormat format) {
    return OutputFileFactory.builderFor(table, 0, 0L).format(format).suffix("deletes").build();
  }

  static String commit(Table table, DeleteFile file) {
    table.newRowDelta().addDeletes(file).commit();
    return file.location();
  }

  static StructLike partitionData(PartitionSpec spec, Row values) {
    if (values == null) { return null; }
    Types.StructType type = spec.partitionType();
    GenericRecord record = GenericRecord.create(type);
    for (int i = 0; i < values.length(); i++) {
      record.set(i, toIceberg(((Types.NestedField) type.fields().get(i)).type(), values.get(i)));
    }
    PartitionData data = new PartitionData(type);
    return data.copyFor(new InternalRecordWrapper(type).wrap(record));
  }

  static void set(GenericRecord record, String[] path, int depth, Object value) {
    Types.NestedField field = record.struct().field(path[depth]);
    if (depth == path.length - 1) {
      record.setField(field.name(), toIceberg(field.type(), value));
      return;
    }
    if (record.getField(field.name()) == null) {
      record.setField(field.name(), GenericRecord.create(field.type().asStructType()));
    }
    set((GenericRecord) record.getField(field.name()), path, depth + 1, value);
  }

  static Object toIceberg(Type type, Object value) {
    if (value instanceof Instant) { return ((Instant) value).atOffset(ZoneOffset.UTC); }
    if (type.typeId() == Type.TypeID.UUID && value != null) {
      return UUID.fromString((String) value);
    }
    if (type.typeId() == Type.TypeID.BINARY && value != null) {
      return ByteBuffer.wrap((byte[]) value);
    }
    return value;
  }
}
"""
