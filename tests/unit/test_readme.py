"""What the README names is there, and what it shows runs."""

import re
from pathlib import Path

import pytest

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.data_source.options import parse_read_options, parse_write_options

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
IN_BACKTICKS = set(re.findall(r"`([^`\n]+)`", README))
SHOWN_BY_USE = {"path", "paths", "table"}  # what load() and save() set


@pytest.mark.parametrize("parse", [parse_read_options, parse_write_options])
def test_every_option_is_named(parse: object) -> None:
    assert callable(parse)
    with pytest.raises(InvalidRequestError) as refused:
        parse({"not-an-option": "1"})
    known = str(refused.value).partition("known: ")[2].split(", ")
    named = {word.lower() for word in IN_BACKTICKS}
    assert not set(known) - SHOWN_BY_USE - named


def test_paths_it_points_to_exist() -> None:
    paths = [p for p in IN_BACKTICKS if re.fullmatch(r"(iceberg_pyspark|jobs|tests)/[\w/.]*", p)]
    assert len(paths) > 3
    for path in paths:
        assert (ROOT / path).exists(), path
    modules = {p for p in IN_BACKTICKS if re.fullmatch(r"(\w+/)+\w+\.py", p)} - set(paths)
    assert len(modules) > 10
    for path in modules:
        assert (ROOT / "iceberg_pyspark" / path).exists(), path


def test_commands_it_names_are_targets() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make ([\w-]+)", README):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_lines_without_spark_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^import iceberg_pyspark as ice.*?(?=^```)", README, re.M | re.S)
    scope: dict[str, object] = {}
    exec(code, scope)
    assert "table" in scope
    assert not capsys.readouterr().err
