"""Registers the commands by name, and defines the options that all commands share."""

from __future__ import annotations

import logging
from enum import Enum
from typing import Annotated

import typer

from iceberg_pyspark.command_line import (
    change_tables,
    describe,
    health,
    maintain,
    run_sql,
    scan_command,
)
from iceberg_pyspark.command_line.group import ERROR_LOGGER, CommandLine
from iceberg_pyspark.command_line.invocation import (
    Invocation,
    invocation_of,
    parse_boolean,
    parse_property,
)
from iceberg_pyspark.command_line.output import Output

app = typer.Typer(
    name="iceberg-py",
    cls=CommandLine,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # panels of rich take longer than all else of `--help`
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    epilog="These options can also follow the command.",
)


class OutputFormat(str, Enum):
    """The values of `--output`."""

    TEXT = "text"
    JSON = "json"


class LogLevel(str, Enum):
    """The values of `--log-level`."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 - with the parser of e-mail

    return version("iceberg-pyspark")


def _print_version(is_flag_set: bool) -> None:
    if is_flag_set:
        Output(as_json=False).value("version", f"iceberg-py {_version()}")
        raise typer.Exit


def _show_version(context: typer.Context) -> None:
    """Print the version alone, as PyIceberg's command of this name does."""
    invocation_of(context).output.value("version", _version())


@app.callback()
def options(
    context: typer.Context,
    catalog: Annotated[
        str | None,
        typer.Option(
            help="Use this catalog. Default: the catalog that a name begins with, else the "
            "configured default catalog."
        ),
    ] = None,
    uri: Annotated[str | None, typer.Option(help="Set the catalog property `uri`.")] = None,
    warehouse: Annotated[
        str | None, typer.Option(help="Set the catalog property `warehouse`.")
    ] = None,
    credential: Annotated[
        str | None,
        typer.Option(
            help="Set the catalog property `credential`. Other users of the machine can see this "
            "option while the command runs; they cannot see `.pyiceberg.yaml`."
        ),
    ] = None,
    ugi: Annotated[
        str | None,
        typer.Option(
            metavar="USER[:GROUP...]",
            help="Set the catalog property `ugi`, the user of a Hive metastore.",
        ),
    ] = None,
    property_: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="KEY=VALUE",
            help="Set a property of the catalog; can be repeated.",
        ),
    ] = None,
    output: Annotated[
        OutputFormat, typer.Option(help="Select the output format.")
    ] = OutputFormat.TEXT,
    json: Annotated[bool, typer.Option("--json", help="Same as `--output json`.")] = False,
    verbose: Annotated[
        str,
        typer.Option(metavar="BOOLEAN", help="Print the traceback of an error, if `true`."),
    ] = "false",
    log_level: Annotated[
        LogLevel,
        typer.Option(
            case_sensitive=False,
            envvar="PYICEBERG_LOG_LEVEL",
            help="Log messages of this level and above; `debug` adds tracebacks to errors.",
        ),
    ] = LogLevel.WARNING,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Work with Iceberg tables and catalogs at a terminal and in scripts.

    TABLE is the name of a table in a catalog, such as db.table, or the path of the table's folder
    or of one of its metadata files.

    Configure catalogs with these options, with environment variables
    PYICEBERG_CATALOG__<NAME>__<KEY>, or in .pyiceberg.yaml.
    """
    del version
    logging.basicConfig(level=log_level.value.upper(), format="%(levelname)s %(name)s: %(message)s")
    is_verbose = parse_boolean(verbose)
    logging.getLogger(ERROR_LOGGER).setLevel(logging.DEBUG if is_verbose else logging.NOTSET)
    flags = {"uri": uri, "warehouse": warehouse, "credential": credential, "ugi": ugi}
    properties_ = {key: value for key, value in flags.items() if value is not None}
    properties_.update(map(parse_property, property_ or []))
    as_json = json or output is OutputFormat.JSON
    context.obj = Invocation(
        catalog=catalog, properties=properties_, output=Output(as_json=as_json)
    )


app.command("list")(describe.list_names)
app.command()(describe.describe)
app.command()(describe.schema)
app.command()(describe.spec)
app.command()(describe.location)
app.command()(describe.uuid)
app.command()(describe.files)
app.command()(describe.snapshots)
app.command()(describe.history)
app.command()(describe.refs)
app.command("list-refs", hidden=True)(describe.refs)
app.command("version", hidden=True)(_show_version)
app.command()(health.health)
app.command()(health.verify)
app.command()(scan_command.scan)
app.command("sql")(run_sql.run_sql)
app.add_typer(change_tables.create_app, name="create")
app.add_typer(change_tables.drop_app, name="drop")
app.command()(change_tables.rename)
app.command()(change_tables.register)
app.add_typer(maintain.maintain_app, name="maintain")
app.add_typer(change_tables.properties_app, name="properties")
