"""A REST catalog that takes every kind of login, vends keys of three stores, and tells secrets.

Its refusals repeat the header of the login, as some servers do, so that the client has to hide it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.http_server import Reply, Request
from tests.support.rest_answers import error
from tests.support.secret_forms import new_secret, of_keys

_TABLE = "/v1/namespaces/db/tables/t"


@dataclass(frozen=True)
class Logins:
    """The server's answers; `metadata` is the content of a metadata file, at `location`."""

    location: str
    metadata: Mapping[str, Any]
    secrets: Mapping[str, str]
    """The secrets of all logins and answers, by their names."""

    def __call__(self, request: Request) -> Reply:
        match request.method, request.path:
            case _, "/v1/oauth/tokens":
                token = {"access_token": self.secrets["oauth2 token"], "token_type": "bearer"}
                return Reply(200, {**token, "expires_in": 3600})
            case _, "/v1/config":
                return Reply(200, {"defaults": {}, "overrides": {}})
            case "GET", path if path == _TABLE:
                return Reply(200, self._table())
        login = request.headers.get("authorization", "")
        return error(401, "NotAuthorizedException", f"no access with Authorization: {login}")

    def _table(self) -> dict[str, Any]:
        vended = {k: v for k, v in self.secrets.items() if k.startswith(("s3.", "adls.", "gcs."))}
        return {
            "metadata-location": self.location,
            "metadata": self.metadata,
            "config": {**vended, "token": self.secrets["token of the table"]},
            "storage-credentials": [{"prefix": "s3://bucket", "config": vended}],
        }


def login_secrets() -> dict[str, str]:
    """Return a new secret for each kind of login, and for each answer of the server."""
    logins = ["oauth2 secret", "oauth2 token", "bearer token", "token of the table", "header"]
    logins += ["sigv4 secret", "sigv4 session", "basic password"]
    vended = ["s3.access-key-id", "s3.secret-access-key", "s3.session-token"]
    vended += ["adls.sas-token.acc", "gcs.oauth2.token"]
    secrets = of_keys([*logins, *vended])
    # as the header of the request has it
    secrets["basic login"] = base64.b64encode(f"me:{secrets['basic password']}".encode()).decode()
    return secrets


def catalogs(uri: str, secrets: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the properties of one catalog for each kind of login at the server."""
    sigv4 = {
        "rest.access-key-id": new_secret(),
        "rest.secret-access-key": secrets["sigv4 secret"],
        "rest.session-token": secrets["sigv4 session"],
    }
    logins: dict[str, dict[str, str]] = {
        "oauth2": {
            "credential": f"me:{secrets['oauth2 secret']}",
            "oauth2-server-uri": f"{uri}/v1/oauth/tokens",
        },
        "bearer": {"token": secrets["bearer token"]},
        "basic": {
            "rest.auth.type": "basic",
            "rest.auth.basic.username": "me",
            "rest.auth.basic.password": secrets["basic password"],
        },
        "sigv4": {"rest.sigv4-enabled": "true", "rest.signing-region": "r-1", **sigv4},
        "header": {"header.X-Api-Key": secrets["header"]},
    }
    return {name: {"type": "rest", "uri": uri, **login} for name, login in logins.items()}


def read_metadata(path: str) -> dict[str, Any]:
    """Return the content of a local metadata file."""
    with open(path, encoding="utf-8") as file:
        content: dict[str, Any] = json.load(file)
    return content
