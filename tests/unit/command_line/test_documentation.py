"""The commands of the guide run as printed, except commands that need Spark or change a shell."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import iceberg_pyspark as ice
from tests.support.documentation import PAGES, commands_of, name_of
from tests.unit.command_line.conftest import Run

COMMANDS = {page: commands_of(page, "iceberg-py") for page in PAGES}
WITH_COMMANDS = [page for page, commands in COMMANDS.items() if commands]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name_of)
def test_the_commands_of_a_page_run(run: Run, tmp_path: Path, page: Path) -> None:
    warehouse = f"{tmp_path}/warehouse"
    commands = [shlex.split(c.replace("/warehouse", warehouse)) for c in COMMANDS[page]]
    if not any("create" in command for command in commands):
        catalog = ice.load_catalog("default", warehouse=warehouse)
        catalog.create_namespace("db")
        for name in {
            word for words in commands for word in words if re.fullmatch(r"db\.\w+", word)
        }:
            catalog.create_table(name, schema="id BIGINT, day DATE")
    ran = 0
    for program, *arguments in commands:
        assert program == "iceberg-py"
        if "sql" in arguments or arguments == ["--install-completion"]:
            continue
        answer = run(*arguments, warehouse=None)
        assert answer.code == 0, (arguments, answer.errors)
        ran += 1
    assert ran


def test_there_are_commands_to_run() -> None:
    """Code fences written in another style would run nothing, and no other test would notice."""
    pages = {page.name for page in WITH_COMMANDS}
    assert {"command-line.md", "health.md", "verify.md"} <= pages
    assert sum(map(len, COMMANDS.values())) > 12


@pytest.mark.parametrize("name", ["list", "properties get table", "create table", "sql"])
def test_every_command_explains_itself(run: Run, name: str) -> None:
    answer = run(*name.split(), "--help")
    assert answer.code == 0
    assert f"iceberg-py {name}" in answer.text
