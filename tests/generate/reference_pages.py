"""Generate the pages of docs/reference, and parts of docs/guide/verify.md, docs/conformance.md and
README.md.

Run `make generate` after a change of an option, a property, a metadata table, a procedure, an
error, a rule, a figure, or a test that shows a line of the specification.
`docs/reference/meanings.yaml` contains the meaning of each name; a name without a meaning, or a
meaning without a name, is an error.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

import yaml

from iceberg_pyspark import errors
from iceberg_pyspark.spark.data_source import read_options
from iceberg_pyspark.spark.options import stream_options
from iceberg_pyspark.spark.write import write_options
from iceberg_pyspark.spec import table_properties
from iceberg_pyspark.spec.property_types import (
    BoolProperty,
    ChoiceProperty,
    ColumnProperties,
    FractionProperty,
    IntProperty,
    PatternProperty,
    TableProperty,
)
from iceberg_pyspark.storage.store_properties import LOCATION_OPTIONS, STORAGE_PREFIXES
from iceberg_pyspark.table.maintenance.procedure_parts import Interface, Parameter
from iceberg_pyspark.table.maintenance.procedures import PROCEDURES
from iceberg_pyspark.table.metadata_tables.lookup import METADATA_TABLES
from iceberg_pyspark.table.table import Table
from iceberg_pyspark.table.verify.rules import RULES_OF_ROOT_MANIFESTS, RULES_OF_TABLES
from tests.generate.figures import chart, figures, pipe_table
from tests.generate.specification_lines import CONFORMANCE, with_tests
from tests.support.commit_tables import commit_table

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
REFERENCE = ROOT / "docs" / "reference"
VERIFY_GUIDE = ROOT / "docs" / "guide" / "verify.md"
RESULTS = ROOT / "tests" / "bench" / "RESULTS.md"
Meanings: TypeAlias = Mapping[str, Mapping[str, str]]

WRITTEN = "<!-- Written from the code by `make generate`: change the code or meanings.yaml. -->\n"
FIGURES = "<!-- figures: written from tests/bench/RESULTS.md by `make generate` -->"
FIGURES_END = "<!-- end of figures -->"
RULES = "<!-- rules: written from iceberg_pyspark/table/verify/rules.py by `make generate` -->"
RULES_END = "<!-- end of rules -->"
TESTS = "<!-- tests: written from the tests by `make generate` -->"
TESTS_END = "<!-- end of tests -->"

_AS_SPARK_WRITES = {
    "timestampasof": "timestampAsOf",
    "versionasof": "versionAsOf",
    "mergeschema": "mergeSchema",
}
_NAMED_BY_USE = {"path", "paths", "table"}  # set by load() and save()
_IN_CODE = re.compile(r"^(?:commit|write|read|gc|history|schema)\.[\w.-]*[\w-]$")


def pages() -> dict[Path, str]:
    """Return the full text of every generated file, by path."""
    meanings = yaml.safe_load((REFERENCE / "meanings.yaml").read_text(encoding="utf-8"))
    return {
        REFERENCE / "read-options.md": _read_options(meanings),
        REFERENCE / "write-options.md": _write_options(meanings),
        REFERENCE / "table-properties.md": _table_properties(meanings),
        REFERENCE / "metadata-tables.md": _metadata_tables(meanings),
        REFERENCE / "errors.md": _errors(meanings),
        REFERENCE / "procedures.md": _procedures(meanings),
        VERIFY_GUIDE: _with_rules(VERIFY_GUIDE.read_text(encoding="utf-8")),
        CONFORMANCE: _with_tests(CONFORMANCE.read_text(encoding="utf-8")),
        README: with_figures(README.read_text(encoding="utf-8")),
        ROOT / "docs" / "figures.svg": chart(RESULTS.read_text(encoding="utf-8")),
    }


def described(names: Collection[str], meanings: Mapping[str, str], section: str) -> dict[str, str]:
    """Return the meanings of names, sorted; raise `ValueError` unless exactly these have one."""
    missing, unknown = sorted(set(names) - set(meanings)), sorted(set(meanings) - set(names))
    if missing or unknown:
        raise ValueError(
            f"docs/reference/meanings.yaml, {section}: without a meaning are {missing}, "
            f"not in the code are {unknown}"
        )
    return {name: " ".join(meanings[name].split()) for name in sorted(names)}


def _page(title: str, *parts: str) -> str:
    return "\n".join([WRITTEN, f"# {title}\n", *parts])


def _prose(text: str) -> str:
    """Return a paragraph wrapped to lines of at most 100 characters."""
    return textwrap.fill(" ".join(text.split()), 100, break_on_hyphens=False) + "\n"


def _between(text: str, begin: str, end: str, *parts: str) -> str:
    """Replace the parts of a page between marker lines; raise `ValueError` without markers."""
    before, *sections = text.split(f"{begin}\n")
    if len(sections) != len(parts) or not all(f"\n{end}\n" in section for section in sections):
        raise ValueError(f"expected {len(parts)} times a line '{begin}' and '{end}' after it")
    rests = (section.partition(f"\n{end}\n")[2] for section in sections)
    return before + "".join(
        f"{begin}\n\n{part}\n{end}\n{rest}" for part, rest in zip(parts, rests, strict=True)
    )


def _code(text: object) -> str:
    return f"`{text}`"


# --- options --------------------------------------------------------------------------------------


def _read_options(meanings: Meanings) -> str:
    meaning_by_name = described(read_options.READ_OPTIONS, meanings["read-options"], "read-options")
    both = _of_both(meanings)
    names = stream_options.STREAM_OPTIONS
    of_streams = described(names, meanings["stream-options"], "stream-options")
    return _page(
        "Read options",
        _prose(meanings["pages"]["read-options"]),
        pipe_table(("option", "meaning"), ((_option(k), v) for k, v in meaning_by_name.items())),
        "## Of reads and writes\n",
        pipe_table(("option", "meaning"), ((_code(k), v) for k, v in both.items())),
        "## Of streams\n",
        _prose(meanings["pages"]["stream-options"]),
        pipe_table(("option", "meaning"), ((_code(k), v) for k, v in of_streams.items())),
        "## Accepted without effect\n",
        _prose(meanings["pages"]["without-effect-of-reads"]),
        _listed(
            read_options.READ_OPTIONS_WITHOUT_EFFECT | stream_options.STREAM_OPTIONS_WITHOUT_EFFECT
        ),
    )


def _of_both(meanings: Meanings) -> dict[str, str]:
    names = {*read_options.COMMON, *(f"{p}<key>" for p in ("catalog.", *STORAGE_PREFIXES))}
    assert set(LOCATION_OPTIONS) < names
    return described(names - _NAMED_BY_USE, meanings["options-of-both"], "options-of-both")


def _write_options(meanings: Meanings) -> str:
    source, catalog = (
        {*write_options.OPTIONS[way], *(f"{p}<key>" for p in write_options.PREFIXES[way])}
        for way in write_options.OPTIONS
    )
    meaning_by_name = described(source | catalog, meanings["write-options"], "write-options")
    without_effect = tuple(write_options.WITHOUT_EFFECT.values())
    overridden = write_options.PROPERTY_BY_OPTION
    rows = [
        (
            _option(name),
            _word(name, source, without_effect[0]),
            _word(name, catalog, without_effect[1]),
            _code(overridden[name].name) if name in overridden else "",
            meaning,
        )
        for name, meaning in meaning_by_name.items()
    ]
    return _page(
        "Write options",
        _prose(meanings["pages"]["write-options"]),
        pipe_table(("option", "portable", "catalog", "overrides the property", "meaning"), rows),
        "## Accepted without effect\n",
        _prose(meanings["pages"]["without-effect-of-writes"]),
        _listed(without_effect[0] & without_effect[1]),
    )


def _option(name: str) -> str:
    return _code(_AS_SPARK_WRITES.get(name, name))


def _word(name: str, effective_names: Collection[str], without_effect: Collection[str]) -> str:
    return (
        "yes" if name in effective_names else "no effect" if name in without_effect else "refused"
    )


def _listed(names: Iterable[str]) -> str:
    return "\n".join(f"- {_code(name)}" for name in sorted(names)) + "\n"


# --- table properties -----------------------------------------------------------------------------


def _table_properties(meanings: Meanings) -> str:
    of_deletes = {
        name
        for name in table_properties.KNOWN_PROPERTIES
        if name.startswith("write.delete.")
        and name.replace("write.delete.", "write.", 1) in table_properties.KNOWN_PROPERTIES
        and table_properties.KNOWN_PROPERTIES[name]
        is table_properties.KNOWN_PROPERTIES[name.replace("write.delete.", "write.", 1)]
    }
    columns = {p.name: p for p in table_properties._OF_COLUMNS}
    free = {
        v
        for v in vars(table_properties).values()
        if isinstance(v, str) and _IN_CODE.match(v) and v not in table_properties.KNOWN_PROPERTIES
    }
    names = {*table_properties.KNOWN_PROPERTIES, *free} - of_deletes
    meaning_by_name = described(
        {*names, *(f"{name}<column>" for name in columns)},
        meanings["table-properties"],
        "table-properties",
    )
    kinds: dict[str, TableProperty | None] = {
        **dict.fromkeys(free),
        **table_properties.KNOWN_PROPERTIES,
        **{f"{name}<column>": p.kind for name, p in columns.items()},
    }
    rows = []
    for name, meaning in meaning_by_name.items():
        values, default = _kind(kinds[name])
        # A default that is not a plain value is described in the meaning.
        rows.append((_code(name), values, "" if "Default:" in meaning else default, meaning))
    return _page(
        "Table properties",
        _prose(meanings["pages"]["table-properties"]),
        pipe_table(("property", "values", "default", "meaning"), rows),
        "## Of delete files\n",
        _prose(meanings["pages"]["of-delete-files"]),
        _listed(of_deletes),
    )


def _kind(prop: TableProperty | None) -> tuple[str, str]:
    """Return the possible values of a property and its default, as text."""
    match prop:
        case IntProperty(default=default, minimum=minimum):
            least = "" if minimum is None else f" of at least {minimum:,}"
            return f"whole number{least}", f"{default:,}"
        case BoolProperty(default=default):
            return "`true`, `false`", _code(str(default).lower())
        case ChoiceProperty(default=default, choices=choices):
            return ", ".join(map(_code, choices)), _code(default)
        case FractionProperty(default=default):
            return "number between 0 and 1", str(default)
        case PatternProperty(expectation=expectation):
            return expectation.replace("<", "&lt;"), ""
        case ColumnProperties(kind=kind):
            return _kind(kind)
        case _:
            return "text", ""


# --- rules of verify ------------------------------------------------------------------------------


def _with_rules(guide: str) -> str:
    """Return the guide of `verify` with the current rules."""
    tables = (
        pipe_table(("rule", "requirement"), ((_code(name), text) for name, text in rules.items()))
        for rules in (RULES_OF_TABLES, RULES_OF_ROOT_MANIFESTS)
    )
    return _between(guide, RULES, RULES_END, *tables)


def _with_tests(page: str) -> str:
    """Return the page of conformance with the current tests of its lines and sections."""
    return _between(page, TESTS, TESTS_END, *with_tests(page))


# --- metadata tables, errors ----------------------------------------------------------------------


def _metadata_tables(meanings: Meanings) -> str:
    meaning_by_name = described(METADATA_TABLES, meanings["metadata-tables"], "metadata-tables")
    t = commit_table(partitioned=True)
    table = Table(t.catalog, t.loaded, io=t.io)
    parts = []
    for name, meaning in meaning_by_name.items():
        fields = table.metadata_table(name).schema.fields
        rows = ((_code(f.name), _code(_short(str(f.type)))) for f in fields)
        parts += [f"## {name}\n", f"{meaning}\n", pipe_table(("column", "type"), rows)]
    return _page(
        "Metadata tables",
        _prose(meanings["pages"]["metadata-tables"]),
        *parts,
    )


def _short(type_: str) -> str:
    """Return the type without field ids, which are of no use on this page."""
    return re.sub(r"(\d+: )|( (?:required|optional)(?= ))", "", type_)


def _errors(meanings: Meanings) -> str:
    lines: list[str] = []
    rows: list[tuple[str, str]] = []

    def add(error: type[errors.IcebergError], depth: int) -> None:
        lines.append("    " * depth + error.__name__)
        rows.append((_code(error.__name__), " ".join((error.__doc__ or "").split())))
        for child in error.__subclasses__():
            if child.__module__ == errors.__name__:
                add(child, depth + 1)

    add(errors.IcebergError, 0)
    return _page(
        "Errors",
        _prose(meanings["pages"]["errors"]),
        "```text\n" + "\n".join(lines) + "\n```\n",
        pipe_table(("error", "meaning"), rows),
        _prose(meanings["pages"]["errors-in-spark"]),
    )


# --- procedures -----------------------------------------------------------------------------------


def _procedures(meanings: Meanings) -> str:
    parts = []
    for name, procedure in PROCEDURES.items():
        rows = [
            (_code(p.name), _code(p.type), _in_shell(p), _default(p), _limited(p), p.help)
            for p in procedure.parameters
        ]
        columns = ((_code(column), _code(c.type)) for column, c in procedure.columns.items())
        parts += [
            f"## {name}\n",
            f"{procedure.help}\n",
            pipe_table(
                ("parameter", "type", "in the shell", "default", "only in", "meaning"), rows
            ),
            pipe_table(("result column of CALL", "type"), columns),
        ]
    return _page("Procedures", _prose(meanings["pages"]["procedures"]), *parts)


def _in_shell(p: Parameter) -> str:
    if p.interface in (Interface.CALL, Interface.CALL_WITHOUT_EFFECT):
        return ""
    return _code(p.name.upper() if p.is_required else p.flag)


def _default(p: Parameter) -> str:
    if p.is_required:
        return "required"
    return "" if p.default is None else _code(str(p.default).lower())


def _limited(p: Parameter) -> str:
    return "" if p.interface is Interface.ALL else p.interface.value


# --- figures --------------------------------------------------------------------------------------


def with_figures(readme: str) -> str:
    """Return the README text with the current figures of RESULTS.md."""
    return _between(readme, FIGURES, FIGURES_END, figures(RESULTS.read_text(encoding="utf-8")))


def main() -> None:
    """Write each page whose content is out of date."""
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"written: {path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
