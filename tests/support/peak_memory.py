"""The peak memory of a process, and of its children."""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil


def peak_bytes() -> int:
    """Return the largest resident size of this process so far, in bytes."""
    try:
        # VmHWM covers this program alone; getrusage starts at the parent's size after a fork.
        with open("/proc/self/status") as status:
            lines = dict(line.split(":", 1) for line in status)
        return int(lines["VmHWM"].split()[0]) << 10
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


@contextmanager
def peak_of_children() -> Iterator[dict[str, int]]:
    """Yield the largest resident size in bytes of any child during the block, by program name.

    Children of children count too. A size is that of one process, also if several have the name.
    """
    peaks: dict[str, int] = {}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            for child in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    name = child.name()
                    peaks[name] = max(peaks.get(name, 0), child.memory_info().rss)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        done.set()
        thread.join()
