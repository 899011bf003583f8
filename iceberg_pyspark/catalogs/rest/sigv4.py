"""Signs requests with AWS's Signature Version 4, by botocore: Glue, S3 Tables, API Gateway.

The properties are Java's `rest.signing-*` and `rest.access-key-id`. Without keys, the credentials
come from the places where AWS's own tools find credentials.
"""

from __future__ import annotations

from collections.abc import Mapping

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.session import get_session

from iceberg_pyspark.errors import InvalidRequestError, NotAuthorizedError

_REGION = "rest.signing-region"
_NAME = "rest.signing-name"
_KEY = "rest.access-key-id"
_SECRET = "rest.secret-access-key"
_TOKEN = "rest.session-token"


class SigV4:
    """An authentication that signs each request; botocore renews the credentials."""

    def __init__(self, catalog: str, credentials: Credentials, region: str, service: str) -> None:
        self._catalog = catalog
        self._credentials = credentials
        self._region = region
        self._service = service

    def headers(self, method: str, url: str, body: bytes) -> Mapping[str, str]:
        """Return the headers of the signature, which covers no other header than the host."""
        # botocore logs the request that it signs, with the session token
        request = AWSRequest(method=method, url=url, data=body)
        SigV4Auth(self._credentials.get_frozen_credentials(), self._service, self._region).add_auth(
            request
        )
        return dict(request.headers.items())

    def renew(self) -> bool:
        """Return False: the server would refuse a new signature too."""
        return False


def sigv4_of(catalog: str, properties: Mapping[str, str]) -> SigV4:
    """Return the signing authentication for a catalog's properties.

    Raise `InvalidRequestError` or `NotAuthorizedError`.
    """
    session = get_session()
    region = (
        properties.get(_REGION)
        or properties.get("client.region")
        or session.get_config_variable("region")
    )
    if not region:
        raise InvalidRequestError(
            f"catalog '{catalog}': signed requests need a region; set {_REGION}"
        )
    key, secret = properties.get(_KEY), properties.get(_SECRET)
    if (key is None) != (secret is None):
        raise InvalidRequestError(
            f"catalog '{catalog}': {_KEY} and {_SECRET} belong together; set both"
        )
    if key is not None:
        credentials = Credentials(key, secret, properties.get(_TOKEN))
    else:
        credentials = session.get_credentials()
    if credentials is None:
        raise NotAuthorizedError(
            f"catalog '{catalog}': no AWS credentials were found; set {_KEY} and {_SECRET}, or log "
            "in with AWS's own tools"
        )
    service = properties.get(_NAME, "execute-api")
    return SigV4(catalog, credentials, region, service)
