"""Chromium without a window, to look at pages: an installed one, else the one of an npm package.

The package has the program compressed inside. It is driven by the DevTools protocol through pipes:
its file descriptors 3 and 4, with a null byte after each message.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from tests.services.server import absent, build_lock

VERSION = "153.0.0"
_INSTALLED = ("chromium", "chromium-browser", "google-chrome")
_UNPACK = (
    "const [from, to] = process.argv.slice(1); const fs = require('fs');"
    "fs.writeFileSync(to, require('zlib').brotliDecompressSync(fs.readFileSync(from)))"
)
_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-quic"),
    "--remote-debugging-pipe",
)
_MESSAGES = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")


def program() -> Path:
    """Return the program, installed from npm if necessary."""
    installed = next(filter(None, map(shutil.which, _INSTALLED)), None)
    if installed is not None:
        return Path(installed)
    with build_lock(f"chromium-{VERSION}") as folder:
        program = folder / "chromium"
        if program.exists():
            return program
        npm, node = shutil.which("npm"), shutil.which("node")
        if npm is None or node is None:
            absent("Chromium", "it comes by npm; install Chromium, or Node 20")
        package = f"@sparticuz/chromium@{VERSION}"
        command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), package]
        installation = subprocess.run(command, capture_output=True, text=True, check=False)
        if installation.returncode:
            absent("Chromium", f"npm install failed: {installation.stderr.strip()[-500:]}")
        packed = folder / "node_modules" / "@sparticuz" / "chromium" / "bin"
        libraries = folder / "libraries.tar"
        for source, target in (("chromium", folder / "unpacked"), ("al2023.tar", libraries)):
            subprocess.run([node, "-e", _UNPACK, packed / f"{source}.br", target], check=True)
        with tarfile.open(libraries) as archive:
            archive.extractall(folder, filter="data")
        (folder / "unpacked").chmod(0o755)
        (folder / "unpacked").rename(program)
        return program


@dataclass
class Page:
    """A loaded page; `messages` are those of its console so far, errors included."""

    _requests: BinaryIO
    _answers: BinaryIO
    _session: str = ""
    _last_id: int = 0
    _events: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript."""
        answer = self._ask("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"]["value"]

    def load(self, uri: str) -> None:
        """Open a page and wait until it has loaded."""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._ask(f"{domain}.enable")
        self._events.clear()
        self._ask("Page.navigate", url=uri)
        while "Page.loadEventFired" not in self._events:
            self._take()

    def _ask(self, method: str, **parameters: Any) -> Mapping[str, Any]:
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._requests.write(json.dumps(message).encode() + b"\0")
        self._requests.flush()
        while (answer := self._take()).get("id") != self._last_id:
            pass
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        result: Mapping[str, Any] = answer["result"]
        return result

    def _take(self) -> Mapping[str, Any]:
        """Return the next message of the browser."""
        text = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            if not byte:
                raise AssertionError("Chromium has ended")
            text += byte
        message: Mapping[str, Any] = json.loads(text)
        if "method" in message:
            self._events.append(message["method"])
            if message["method"] in _MESSAGES:
                self.messages.append(json.dumps(message["params"]))
        return message


@contextlib.contextmanager
def shown(file: Path, folder: Path) -> Iterator[Page]:
    """Yield a page that Chromium shows from a file; its own files and log are in `folder`."""
    browser = program()
    to_browser, requests = os.pipe()
    answers, from_browser = os.pipe()
    # the browser's descriptors 3 and 4, whatever their numbers are here
    redirected = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
    command = ["bash", "-c", redirected, "bash", str(browser), *_OPTIONS]
    command.append(f"--user-data-dir={folder / 'profile'}")
    libraries = {"LD_LIBRARY_PATH": str(browser.parent / "lib")}
    with (
        (folder / "chromium.log").open("wb") as log,
        subprocess.Popen(
            command,
            pass_fds=(to_browser, from_browser),
            stdout=log,
            stderr=log,
            env={**os.environ, **(libraries if _lacks_libraries(browser) else {})},
        ) as process,
    ):
        os.close(to_browser)
        os.close(from_browser)
        try:
            with os.fdopen(requests, "wb") as output, os.fdopen(answers, "rb") as answered:
                page = Page(output, answered)
                page.load(file.as_uri())
                yield page
        finally:
            process.kill()


def _lacks_libraries(browser: Path) -> bool:
    ldd = subprocess.run(["ldd", browser], capture_output=True, text=True, check=False)
    return "not found" in ldd.stdout
