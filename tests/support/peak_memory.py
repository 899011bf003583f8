"""The most memory that a program has had."""

from __future__ import annotations

import resource


def peak_bytes() -> int:
    """The largest resident size of this process so far."""
    try:
        # of this program alone; getrusage's is the parent's at least, where that was larger
        with open("/proc/self/status") as status:
            lines = dict(line.split(":", 1) for line in status)
        return int(lines["VmHWM"].split()[0]) << 10
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
