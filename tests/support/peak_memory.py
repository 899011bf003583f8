"""The peak memory of a process."""

from __future__ import annotations

import resource


def peak_bytes() -> int:
    """Return the largest resident size of this process so far, in bytes."""
    try:
        # VmHWM covers this program alone; getrusage starts at the parent's size after a fork.
        with open("/proc/self/status") as status:
            lines = dict(line.split(":", 1) for line in status)
        return int(lines["VmHWM"].split()[0]) << 10
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
