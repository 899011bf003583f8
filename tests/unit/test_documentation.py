"""Everything that README.md and docs/ name exists, and generated pages are current."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from iceberg_pyspark.catalogs import registry
from iceberg_pyspark.catalogs.catalog_properties import configured_names, configured_properties
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.data_source.read_options import parse_read_options, parse_write_options
from iceberg_pyspark.spec.table_properties import KNOWN_PROPERTIES
from jobs import ingest, maintain, thrift_server
from tests.generate import figures, reference_pages
from tests.support.documentation import DOCS, PAGES, README, ROOT, blocks_of, commands_of, name_of

_BLOCK = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
TEXT = {page: page.read_text(encoding="utf-8") for page in PAGES}
PROSE = {page: _BLOCK.sub("", text) for page, text in TEXT.items()}
IN_BACKTICKS = {page: set(re.findall(r"`([^`\n]+)`", text)) for page, text in PROSE.items()}


def parse_maintenance(words: list[str]) -> None:
    """Parse the words of `jobs/maintain.py`; a wrong word is an exception."""
    job: Any = typer.main.get_command(maintain.app)
    job.commands[words[0]].make_context(words[0], words[1:])


JOBS = {
    "jobs/ingest.py": ingest.parse_arguments,
    "jobs/maintain.py": parse_maintenance,
    "jobs/thrift_server.py": thrift_server.parse_arguments,
}
WITH_JOBS = [page for page in PAGES if commands_of(page, "spark-submit")]
WITH_CONFIGURATIONS = [p for p in PAGES if any(b.language == "yaml" for b in blocks_of(p))]
SHOWN_BY_USE = {"path", "paths", "table"}  # set by load() and save()

every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


# --- generated pages ------------------------------------------------------------------------------


@pytest.mark.parametrize("page", reference_pages.pages(), ids=name_of)
def test_generated_page_is_current(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == reference_pages.pages()[page], "run `make generate`"


@pytest.mark.parametrize(
    ("parse", "page"),
    [(parse_read_options, "read-options.md"), (parse_write_options, "write-options.md")],
)
def test_every_option_is_named(parse: object, page: str) -> None:
    assert callable(parse)
    with pytest.raises(InvalidRequestError) as refused:
        parse({"not-an-option": "1"})
    option_names = str(refused.value).partition("known: ")[2].split(", ")
    assert len(option_names) > 10
    documented_words = {
        word.lower()
        # This page lists the options of both reads and writes.
        for name in {page, "read-options.md"}
        for word in IN_BACKTICKS[DOCS / "reference" / name]
    }
    assert not set(option_names) - SHOWN_BY_USE - documented_words


def test_every_property_is_named() -> None:
    assert not set(KNOWN_PROPERTIES) - IN_BACKTICKS[DOCS / "reference" / "table-properties.md"]


def test_the_figures_are_those_of_the_results() -> None:
    results = reference_pages.RESULTS.read_text(encoding="utf-8")
    (mean,) = re.findall(r"│ geometric mean │ +│ +│ +([\d.]+) │", results)
    assert f"| 22 TPC-H queries, geometric mean |  |  | {mean}x |" in TEXT[README]
    with pytest.raises(ValueError, match="0 lines 'full scan: no deletes'"):
        figures.figures(results.replace("full scan: no", "whole scan: no"))


# --- commands and configurations ------------------------------------------------------------------


@pytest.mark.parametrize("page", WITH_JOBS, ids=name_of)
def test_jobs_have_the_arguments_of_a_page(page: Path) -> None:
    for command in commands_of(page, "spark-submit"):
        words = shlex.split(command)
        (position,) = [i for i, word in enumerate(words) if word.startswith("jobs/")]
        JOBS[words[position]](words[position + 1 :])


def flat(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return properties with dotted names in place of nested ones."""
    result: dict[str, str] = {}
    for name, value in properties.items():
        nested = flat(value) if isinstance(value, dict) else {"": value}
        result |= {f"{name}.{k}".rstrip(".").lower(): v for k, v in nested.items()}
    return result


@pytest.mark.parametrize("page", WITH_CONFIGURATIONS, ids=name_of)
def test_the_configurations_of_a_page_load(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for block in blocks_of(page):
        if block.language != "yaml":
            continue
        (tmp_path / ".pyiceberg.yaml").write_text(block.code, encoding="utf-8")
        catalogs = yaml.load(block.code, Loader=yaml.BaseLoader)["catalog"]
        assert configured_names({}) == sorted(catalogs)
        for name, properties in catalogs.items():
            assert configured_properties(name, {}) == flat(properties)
            assert registry._type_of(name, configured_properties(name, {}))


def test_there_are_jobs_and_configurations() -> None:
    assert {page.name for page in WITH_JOBS} >= {"maintenance.md", "writing.md"}
    assert {page.name for page in WITH_CONFIGURATIONS} >= {"catalogs.md", "stores.md"}


# --- names in pages -------------------------------------------------------------------------------


def test_readme_is_short() -> None:
    lines = TEXT[README].splitlines()
    assert len(lines) <= 160
    assert max(map(len, lines)) <= 120
    assert re.search(r"^    make demo +\S", TEXT[README], re.MULTILINE)
    assert re.search(r"^    make test +\S", TEXT[README], re.MULTILINE)


def test_the_releases_of_readme_are_those_that_were_tried() -> None:
    [head] = re.findall(r"^\| Spark \|.*$", TEXT[DOCS / "releases.md"], re.MULTILINE)
    tried = re.findall(r"\d+\.\d+\.\d+", head)
    assert f"| Spark | {tried[0]} to {tried[-1]}," in TEXT[README]


@every_page
def test_paths_it_names_exist(page: Path) -> None:
    for path in IN_BACKTICKS[page]:
        if re.fullmatch(r"(iceberg_pyspark|jobs|tests|docs)/[\w/.-]*", path):
            assert (ROOT / path).exists(), path
        elif re.fullmatch(r"(\w+/)+\w*(\.py)?", path) and (
            path.endswith(".py") or (ROOT / "iceberg_pyspark" / path.split("/")[0]).is_dir()
        ):
            assert (ROOT / "iceberg_pyspark" / path).exists(), path


def test_there_are_paths_to_check() -> None:
    documented_words = {word for words in IN_BACKTICKS.values() for word in words}
    assert sum(word.startswith(("iceberg_pyspark/", "tests/")) for word in documented_words) > 10
    assert sum(re.fullmatch(r"(\w+/)+\w+\.py", word) is not None for word in documented_words) > 20


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)", PROSE[page]):
        if not link.startswith("https://"):
            assert (page.parent / link).exists(), link


@every_page
def test_commands_it_names_are_targets(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"\bmake ([a-z][\w-]*)(?=`|  |$)", TEXT[page], re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_page_is_in_the_site_and_in_readme() -> None:
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in DOCS.rglob("*.md"):
        name = page.relative_to(DOCS).as_posix()
        assert re.search(rf"[ ]{re.escape(name)}$", site, re.MULTILINE), name
        assert name == "index.md" or f"](docs/{name})" in TEXT[README], name


@every_page
def test_session_settings_and_properties_exist(page: Path) -> None:
    """Names with dots of Iceberg's settings, on any page: a misspelt name would mislead readers."""
    for word in IN_BACKTICKS[page]:
        setting = re.fullmatch(r"spark\.sql\.iceberg\.([a-z][\w.-]+)", word)
        if setting:
            last = setting[1].removeprefix("planning.")
            assert any(map(is_in_code, (f'"{last}"', f'"{setting[1]}"', word))), word
        if re.fullmatch(r"(commit|write|gc)\.[a-z][\w.-]+", word) and not word.endswith(".py"):
            prefixes = ("write.parquet.", "write.metadata.metrics.column", "write.orc.")
            assert word in KNOWN_PROPERTIES or word.startswith(prefixes), word


def test_hooks_before_a_commit_are_the_checks_of_lint() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    entries = [h["entry"].replace(" --force-exclude", "") for h in hooks["repos"][0]["hooks"]]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (lint,) = re.findall(r"^lint: .+\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    lines = lint.replace("$(NEWEST)", ".venv/bin/python").strip("\t\n").split("\n\t")
    checks = [re.sub(r" (\.|\$\(JAVA_SOURCES\))$", "", line) for line in lines]
    assert sorted(entries) == sorted(checks)


# --- error messages -------------------------------------------------------------------------------

TROUBLESHOOTING = DOCS / "troubleshooting.md"
OF_SPARK = {
    "'save' does not support bucketBy",
    "CANNOT_LOAD_CATALOG.PLUGIN_CLASS_NOT_FOUND",
    "DATA_SOURCE_ALREADY_EXISTS",
    "DATA_SOURCE_NOT_EXIST",
    "INSERT_COLUMN_ARITY_MISMATCH",
    "The provided partitioning or clustering columns do not match the existing table's",
}


def test_messages_it_explains_are_in_the_code() -> None:
    messages = re.findall(r"^### `(.+)`$", TEXT[TROUBLESHOOTING], re.MULTILINE)
    assert len(messages) > 30
    for message in set(messages) - OF_SPARK:
        assert is_in_code(message), message


def is_in_code(text: str) -> bool:
    """Return whether a text of the package has this text, in Python or in Java.

    Only the files that have its rarest word are parsed, because to parse all takes seconds.
    """
    words = re.findall(r"[A-Za-z]{3,}", text)
    files = min(([f for f, source in sources().items() if w in source] for w in words), key=len)
    return any(text in texts_of(file) for file in files)


@cache
def sources() -> dict[Path, str]:
    package = ROOT / "iceberg_pyspark"
    files = (*package.rglob("*.py"), *package.rglob("*.java"))
    return {file: file.read_text(encoding="utf-8") for file in files}


@cache
def texts_of(file: Path) -> str:
    """Return all texts of a Python file, with f-string fields as NUL, or a whole Java file."""
    if file.suffix == ".java":
        return re.sub(r'"\s*\n?\s*\+ "', "", sources()[file])
    texts = []
    for node in ast.walk(ast.parse(sources()[file])):
        if isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "\0" for p in node.values)
            texts.append("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(f'"{node.value}"')
    return "\n".join(texts)


# --- without Spark --------------------------------------------------------------------------------


def test_the_page_without_spark_needs_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "warehouse").mkdir()
    scope: dict[str, object] = {}
    for block in blocks_of(DOCS / "guide" / "without-spark.md"):
        assert "pyspark.sql" not in block.code
        exec(block.code.replace("/warehouse", f"{tmp_path}/warehouse"), scope)
    assert "table" in scope
    assert not capsys.readouterr().err
