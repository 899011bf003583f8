"""Projects of tools that make their own session, run with the tools' packages and our wheel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from jobs.find_java import find_java_home
from tests.releases.environments import (
    EnvironmentUnavailableError,
    built_wheel,
    new_environment,
)
from tests.services.server import absent
from tests.support.documentation import DOCS, blocks_of

HERE = Path(__file__).parent
ROWS = HERE / "spark_rows.py"


@contextmanager
def tool_programs(folder: Path, *requirements: str) -> Iterator[Path]:
    """Yield the folder of the programs of an environment with a tool and the wheel."""
    try:
        wheel = built_wheel(folder)
        yield new_environment(folder / "environment", f"{wheel}[spark]", *requirements).parent
    except EnvironmentUnavailableError as e:
        absent(requirements[0], str(e))
    finally:
        shutil.rmtree(folder)


@dataclass(frozen=True)
class Project:
    """A copy of a project, in a folder beside its warehouse, with the settings of a guide page."""

    folder: Path
    programs: Path
    settings: Mapping[str, Any]
    """What the page's YAML has, with paths in this project's warehouse."""

    @staticmethod
    def copied(project: str, page: str, target: str, programs: Path, at: Path) -> Project:
        """Copy a project, and give it the YAML block of a guide page that has a target's name."""
        name, settings = project.split("/")
        folder = at / "project"
        shutil.copytree(HERE / name, folder)
        (at / "warehouse").mkdir()
        [text] = [
            block.code.replace("/warehouse", f"{at}/warehouse")
            for block in blocks_of(DOCS / "guide" / page)
            if block.language == "yml" and f" {target}:\n" in block.code
        ]
        (folder / settings).write_text(text, encoding="utf-8")
        return Project(folder, programs, yaml.safe_load(text))

    def run(self, program: str, *arguments: str, status: int = 0, given: str = "") -> str:
        """Run a program of the environment, and return what it printed."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PY", "SPARK"))}
        done = subprocess.run(
            (self.programs / program, *arguments),
            cwd=self.folder,
            env={
                **inherited,
                "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}",
                "JAVA_HOME": str(find_java_home()),
                "PYSPARK_PYTHON": str(self.programs / "python"),
                "SPARK_LOCAL_IP": "127.0.0.1",
            },
            input=given,
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
        assert done.returncode == status, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def rows(
        self,
        settings: Mapping[str, str],
        queries: Mapping[str, str],
        statements: Sequence[str] = (),
    ) -> dict[str, list[list[str]]]:
        """Run statements, then queries, in a session; return each query's rows as texts, sorted."""
        work = {"settings": settings, "statements": statements, "queries": queries}
        printed = self.run("python", "-m", "iceberg_pyspark.run", str(ROWS), given=json.dumps(work))
        rows: dict[str, list[list[str]]] = json.loads(printed.splitlines()[-1])
        return rows
