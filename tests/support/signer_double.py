"""A double of a catalog that signs S3 requests, and of a store that accepts no others."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.support.http_server import Reply, Request


@dataclass
class SignerDouble:
    """A signer with its own keys; only clients with one of the `tokens` may ask."""

    access_key: str
    secret: str
    tokens: set[str] = field(default_factory=set)
    cache: str = "no-cache"
    signed: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[Reply] = field(default_factory=list)
    """Answers to send instead of signatures, in order."""

    change: Callable[[dict[str, Any]], dict[str, Any]] = lambda answer: answer
    """A function that changes each answer before it is sent."""

    def __call__(self, request: Request) -> Reply:
        asks = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.tokens and asks not in self.tokens:
            return Reply(401, {"error": {"message": "no", "type": "NotAuthorizedException"}})
        if self.refusals:
            return self.refusals.pop(0)
        requests = request.json()
        self.signed.append({**requests, "asked-by": asks})
        aws = AWSRequest(
            requests["method"],
            requests["uri"],
            headers={name: ", ".join(values) for name, values in requests["headers"].items()},
        )
        aws.context["payload_signing_enabled"] = False
        aws.context["client_config"] = None
        _Unsigned(Credentials(self.access_key, self.secret), "s3", requests["region"]).add_auth(aws)
        answer = {"uri": requests["uri"], "headers": {k: [v] for k, v in aws.headers.items()}}
        return Reply(200, self.change(answer), {"Cache-Control": self.cache})

    def was_signed(self, request: Request) -> bool:
        """Return whether a request to a store was signed here."""
        return any(
            s["method"] == request.method and urlsplit(s["uri"]).path == request.path
            for s in self.signed
        )


class _Unsigned(S3SigV4Auth):  # type: ignore[misc]  # botocore has no types
    def payload(self, request: Any) -> str:
        return "UNSIGNED-PAYLOAD"

    def _should_sha256_sign_payload(self, request: Any) -> bool:
        return False


def signing_text(endpoint: str, **more: Any) -> str:
    """Return the storage property for a task that asks this endpoint to sign."""
    content = {"source": "elsewhere", "namespace": ["db"], "name": "t", "endpoint": endpoint}
    return json.dumps({**content, "for_tasks": True, **more})
