"""The guide's commands run as printed, except commands that need Spark or change a shell."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.support.documentation import DOCS, blocks_of
from tests.unit.command_line.conftest import Run

LINES = [
    line
    for block in blocks_of(DOCS / "guide" / "command-line.md")
    if block.language == "bash"
    for line in block.code.splitlines()
]


def test_the_commands_of_the_guide_run(run: Run, tmp_path: Path) -> None:
    ran = 0
    for line in LINES:
        program, *arguments = shlex.split(line.replace("/warehouse", f"{tmp_path}/warehouse"))
        assert program == "iceberg-py"
        if "sql" in arguments or arguments == ["--install-completion"]:
            continue
        answer = run(*arguments, warehouse=None)
        assert answer.code == 0, (line, answer.errors)
        ran += 1
    assert ran > 6


@pytest.mark.parametrize("name", ["list", "properties get table", "create table", "sql"])
def test_every_command_explains_itself(run: Run, name: str) -> None:
    answer = run(*name.split(), "--help")
    assert answer.code == 0
    assert f"iceberg-py {name}" in answer.text
