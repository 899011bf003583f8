"""Kills the own process at one of its steps, as `kill -9` would."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import TypeAlias

from tests.support.hooked_storage import Hook, Moment

PassStep: TypeAlias = Callable[[], None]
"""A function that the process calls at each of its steps; one call does not return."""


def killed_at(step: int) -> PassStep:
    """Return the function that kills the process in its call number `step`, counted from 1."""
    passed = 0

    def pass_step() -> None:
        nonlocal passed
        passed += 1
        if passed == step:
            os.kill(os.getpid(), signal.SIGKILL)

    return pass_step


def around_writes(pass_step: PassStep) -> Hook:
    """Return a hook for `HookedFileIO` that passes a step before and after each write and deletion.

    No step is needed before a read: to die there is to die after the previous write.
    """

    def hook(name: str, _location: str, _moment: Moment) -> None:
        if name in ("open_output", "create_exclusive", "write_bytes", "delete"):
            pass_step()

    return hook
