"""The modules of Java sources: folders of `java/`, each compiled separately with its subfolders.

If a release of Spark lacks classes for one module, the others still compile; `features.py` has the
replacements. The class in front of a session's parser is generated: the methods of the parser
interface differ between releases, so it has those of the installed release. All methods delegate,
except the methods that parse statements. A `java.lang.reflect.Proxy` cannot be used: parsers throw
checked exceptions that the interface does not declare. The catalog's methods for CREATE TABLE ...
LIKE and for change feeds are generated too, for releases that have their types, and so is the call
of the constructor of a stream's sink.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Traversable


CORE = "core"
"""The catalog, the callback to Python, the optimizer rule and commands, for all other modules."""

FILE_SIZES = "file_sizes"
"""Opens files of object stores without a request for their sizes, on executors too."""

FILE_KEYS = "file_keys"
"""The keys of encrypted Parquet files, on executors too."""

PARQUET_SCAN = "parquet_scan"
"""Reads data files by Spark's own Parquet and ORC readers."""

DELETION_VECTORS = "deletion_vectors"
"""Reads deletion vectors in the executors that read the rows."""

POSITION_DELETES = "position_deletes"
"""Reads position delete files in the executors that read the rows."""

LAYOUT = "layout"
"""Distributes rows to the tasks that write them."""

PARQUET_WRITE = "parquet_write"
"""Writes data files by Spark's own Parquet writer."""

DIRECT_WRITE = "direct_write"
"""The Parquet writer for object stores: tasks on executors write final files."""

CHANGE_WRITE = "change_write"
"""The Parquet writer for changed rows, which collects their positions; on executors."""

TASK_STORES = "task_stores"
"""Stores as tasks open them, with credentials that the driver renews; on executors."""

RENEWED_S3A = "renewed_s3a"
"""S3A with credentials that tasks renew; on executors."""

GOOGLE_FILES = "google_files"
"""Google's connector with the address and token of a catalog; on executors."""

AZURE_FILES = "azure_files"
"""Hadoop's file system for Azure with the keys of a catalog; on executors."""

ROW_LEVEL = "row_level"
"""DELETE, UPDATE and MERGE: analysis of the statements, and joins."""

EXTENSIONS = "extensions"
"""Iceberg's statements of ALTER TABLE and of views: a parser in front of Spark's parser."""

FORMAT_NAME = "format_name"
"""The format `iceberg-py` as Spark finds it, with every save mode."""

ICEBERG_NAME = "iceberg_name"
"""The same format under the name `iceberg`, if no connector has registered that name."""

CHANGELOG = "changelog"
"""Change feeds of tables, for Spark 4.2 and newer."""

BUILDS_ON: Mapping[str, tuple[str, ...]] = {
    CORE: (),
    FILE_SIZES: (CORE,),
    FILE_KEYS: (CORE,),
    PARQUET_SCAN: (CORE, FILE_SIZES, FILE_KEYS),
    DELETION_VECTORS: (CORE, FILE_SIZES, FILE_KEYS, PARQUET_SCAN),
    POSITION_DELETES: (CORE, FILE_SIZES, FILE_KEYS, PARQUET_SCAN, DELETION_VECTORS),
    LAYOUT: (CORE,),
    PARQUET_WRITE: (CORE, FILE_KEYS),
    DIRECT_WRITE: (CORE,),
    CHANGE_WRITE: (CORE, FILE_KEYS, PARQUET_WRITE),
    TASK_STORES: (CORE,),
    RENEWED_S3A: (CORE, TASK_STORES),
    GOOGLE_FILES: (CORE, TASK_STORES),
    AZURE_FILES: (CORE, TASK_STORES),
    ROW_LEVEL: (CORE,),
    EXTENSIONS: (CORE,),
    FORMAT_NAME: (CORE,),
    ICEBERG_NAME: (CORE, FORMAT_NAME),
    CHANGELOG: (CORE,),
}
"""Each module with the modules whose classes its sources use; those stand before the module."""

REQUIRED_CLASSES: Mapping[str, str] = {
    RENEWED_S3A: "org.apache.hadoop.fs.s3a.S3AFileSystem",
    GOOGLE_FILES: "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
    AZURE_FILES: "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",
    CHANGELOG: "org.apache.spark.sql.connector.catalog.Changelog",
}
"""By module: a class that Spark's own jars may lack; without the class, it is left out."""

FORMATS: Mapping[str, tuple[str, str]] = {
    FORMAT_NAME: ("IcebergPyFormat", "iceberg-py"),
    ICEBERG_NAME: ("IcebergPyIcebergFormat", "iceberg"),
}
"""By module: the class that Spark finds as a format, and the format's name. Two classes with one
format name are an error.
"""

_OF_ALL_DELETES = (
    "IcebergPyCachedDeletes",
    "IcebergPyDeletedCursor",
    "IcebergPyDeletedRows",
    "IcebergPyDeleteCache",
    "IcebergPyReadFailure",
)
_ON_EXECUTORS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    DELETION_VECTORS: (
        "IcebergPyVectorProbe",
        ("IcebergPyDeletionVector", "IcebergPyVectorProbe", "IcebergPyVectorReader"),
    ),
    POSITION_DELETES: (
        "IcebergPyPositionProbe",
        (
            "IcebergPyEmptyConverter",
            "IcebergPyEmptyConverters",
            "IcebergPyPositionColumns",
            "IcebergPyPositionFile",
            "IcebergPyPositionProbe",
            "IcebergPyPositionReader",
            "IcebergPyPositionsOfFile",
        ),
    ),
}
"""By module: the class that probes rows, and the classes besides `_OF_ALL_DELETES` that executors
compile. These classes name no other classes of this package.
"""

_OF_THREADS = ("IcebergPyThreadProbe",)
"""The classes that executors compile if each thread needs its own probe."""

_SUFFIX = ".java"

# A job may get the package as a zip file, by `--py-files`.
_SOURCES = resources.files(__package__) / "java"


def classes_of(module: str) -> list[str]:
    """Return the names of the classes that a module has a file for."""
    return [_class(file) for file in _files(module)]


def source_of(module: str) -> str:
    """Return the sources of a module as one file: Janino needs one file with the imports first."""
    return _one_file(_files(module))


@cache
def source_on_executors(module: str) -> str:
    """Return the source that reads a module's deletes: the body of a class that Spark generates."""
    probe, classes = _ON_EXECUTORS[module]
    return _generate((*_OF_ALL_DELETES, *classes), f"new {probe}(references[0])")


@cache
def source_of_threads() -> str:
    """Return the short source that finds a task's existing probe again."""
    source = _generate(_OF_THREADS, "IcebergPyThreadProbe.of(references)")
    return re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)


def _generate(classes: Sequence[str], name: str) -> str:
    """Return classes as the body of a class that Spark generates, which creates an object."""
    files = [f for module in _ON_EXECUTORS for f in _files(module) if _class(f) in classes]
    entry = f"\npublic Object generate(Object[] references) {{ return {name}; }}\n"
    inner = re.sub(r"^(public )?class ", "static class ", _one_file(files), flags=re.MULTILINE)
    # On a driver that also executes, Janino would resolve these names to the driver's classes.
    return (inner + entry).replace("IcebergPy", "Inner")


def _one_file(files: Sequence[Traversable]) -> str:
    lines = [line for f in files for line in f.read_text("utf-8").splitlines()]
    imports = sorted({line for line in lines if line.startswith("import ")})
    return "\n".join([*imports, *(line for line in lines if not line.startswith("import "))])


def generated_source(module: str, loader: Any) -> str:
    """Return a module's additional source, generated for the release of the class loader."""
    generator = _GENERATORS.get(module)
    return "" if generator is None else generator(loader)


def generator_text(module: str) -> str:
    """Return, as text, what besides its sources determines the classes of a module."""
    if module in _GENERATORS:
        return inspect.getsource(_GENERATORS[module]) + _CATALOG_CLASS + str(_CATALOG_METHODS)
    return ""


def _files(module: str) -> list[Traversable]:
    return sorted(_java_files(_SOURCES / module), key=lambda f: f.name)


def _java_files(folder: Traversable) -> Iterator[Traversable]:
    for path in folder.iterdir():
        if path.is_dir():
            yield from _java_files(path)
        elif path.name.endswith(_SUFFIX):
            yield path


def _class(file: Traversable) -> str:
    return file.name.removesuffix(_SUFFIX)


_INTERFACE = "org.apache.spark.sql.catalyst.parser.ParserInterface"
_STATIC = 8
_CLASS = """
/** Made for one release of Spark: see java_modules.py. */
public class IcebergPyParser extends IcebergPyFrontParser implements {interface} {{
  public IcebergPyParser({interface} next) {{ super(next); }}
{methods}
}}
"""
_METHOD = """
  public {type} {name}({parameters}) {{
    try {{
      {statement}return next.{name}({arguments});
    }} catch (Throwable e) {{
      org.apache.spark.unsafe.Platform.throwException(e);
      return null;
    }}
  }}"""
_STATEMENT = """{type} plan = plan(a0);
      if (plan != null) return plan;
      """


def _parser_source(loader: Any) -> str:
    """Return the class `IcebergPyParser`; the rest of the parser is in `java/extensions/`."""
    methods = "".join(_methods(loader.loadClass(_INTERFACE)))
    return _CLASS.format(interface=_INTERFACE, methods=methods)


def _methods(interface: Any) -> Iterator[str]:
    for method in interface.getMethods():
        if method.getModifiers() & _STATIC:
            continue
        name, type_ = method.getName(), method.getReturnType().getCanonicalName()
        types = [t.getCanonicalName() for t in method.getParameterTypes()]
        parses_statements = name.startswith("parsePlan") and types[0] == "java.lang.String"
        yield _METHOD.format(
            type=type_,
            name=name,
            parameters=", ".join(f"{t} a{i}" for i, t in enumerate(types)),
            arguments=", ".join(f"a{i}" for i in range(len(types))),
            statement=_STATEMENT.format(type=type_) if parses_statements else "",
        )


_TABLE_CATALOG = "org.apache.spark.sql.connector.catalog.TableCatalog"
_CATALOG_CLASS = """
/** Made for one release of Spark: see java_modules.py. */
class IcebergPyCatalogOfRelease extends IcebergPyCatalog {{
{methods}
}}
"""
_SINK = "org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2Exec"
_SINK_CLASS = """
/** Made for one release of Spark: see java_modules.py. */
abstract class IcebergPySinkOfRelease extends {base} {{
  IcebergPySinkOfRelease(org.apache.spark.sql.connector.write.BatchWrite write,
      org.apache.spark.sql.execution.SparkPlan query) {{
    super(write, null, query{more});
  }}
}}
"""
_SINK_ARGUMENTS = {
    "scala.collection.immutable.Seq": "IcebergPyBridge.seq(new ArrayList())",
    "scala.Option": "scala.Option.empty()",
}
"""What a sink has after its write, the refresh of caches, and its query: metrics, a transaction."""
_CATALOG_METHODS = {
    "createTableLike": """
  public Table createTableLike(
      Identifier identifier, org.apache.spark.sql.connector.catalog.TableInfo like, Table source)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    checkPlain(identifier, like.columns(), like.constraints());
    return createTable(identifier, like);
  }""",
    "loadChangelog": """
  public org.apache.spark.sql.connector.catalog.Changelog loadChangelog(Identifier identifier,
      org.apache.spark.sql.connector.catalog.ChangelogContext context,
      CaseInsensitiveStringMap options) throws NoSuchTableException {
    return (org.apache.spark.sql.connector.catalog.Changelog)
        changelog(identifier, context, options);
  }
  /** Name the read options by which feeds differ. */
  public java.util.Set changelogStateOptionKeys() { return java.util.Set.of("branch"); }""",
}


def _core_source(loader: Any) -> str:
    """Return the class `IcebergPyCatalogOfRelease`, with the methods that the release calls, and
    the class `IcebergPySinkOfRelease`, with the constructor that it has.
    """
    names = {m.getName() for m in loader.loadClass(_TABLE_CATALOG).getMethods()}
    methods = [text for name, text in _CATALOG_METHODS.items() if name in names]
    (constructor,) = loader.loadClass(_SINK).getConstructors()
    more = [_SINK_ARGUMENTS[t.getName()] for t in list(constructor.getParameterTypes())[3:]]
    return _CATALOG_CLASS.format(methods="".join(methods)) + _SINK_CLASS.format(
        base=_SINK, more="".join(f", {one}" for one in more)
    )


_GENERATORS: Mapping[str, Callable[[Any], str]] = {
    CORE: _core_source,
    EXTENSIONS: _parser_source,
}
"""By module: the function that generates its additional source."""
