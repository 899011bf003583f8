"""What a pickled `IcebergDataSource` says, read as data: nothing of the pickle is run.

Spark's JVM holds data sources as Python has pickled them, and shows them to the bridge. What comes
from there is never unpickled: the opcodes of a pickle are a list, and the state one text of it.
"""

from __future__ import annotations

import pickletools

MARK = "iceberg-py state "
"""What the text of a state starts with."""


def state_in(pickled: bytes) -> str | None:
    """The state in a pickled data source; None if it is none of ours, or no pickle."""
    try:
        for _, argument, _ in pickletools.genops(pickled):
            if isinstance(argument, str) and argument.startswith(MARK):
                return argument
    except ValueError:
        return None
    return None
