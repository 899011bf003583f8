"""A server in front of Iceberg's REST fixture that changes the answers which contain a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any
from urllib.parse import urlencode

import httpx

from tests.support.http_server import Reply, Request


def forwarded(
    client: httpx.Client,
    behind: str,
    request: Request,
    headers: Collection[str],
    change_table: Callable[[dict[str, Any]], None],
) -> Reply:
    """Return the answer of the server at `behind`, with each loaded table changed.

    Only the `headers` of these names are passed on. `change_table` changes the JSON of the answer;
    an error that it raises is an error here.
    """
    query = f"?{urlencode(request.query, doseq=True)}" if request.query else ""
    answer = client.request(
        request.method,
        f"{behind}{request.path}{query}",
        content=request.body or None,
        headers={n: v for n, v in request.headers.items() if n in headers},
    )
    body = answer.content
    if answer.status_code == 200 and b'"metadata"' in body:
        content = json.loads(body)
        change_table(content)
        body = json.dumps(content).encode()
    return Reply(answer.status_code, body or None, {"Content-Type": "application/json"})
