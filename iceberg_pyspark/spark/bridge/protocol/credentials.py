"""Requests about credentials that expire while tasks of the JVM use them."""

from __future__ import annotations

from collections.abc import Mapping

from iceberg_pyspark.spark.bridge.protocol.messages import Request, Response


class CredentialsRenew(Request, frozen=True, kw_only=True):
    """The request for new credentials of a store; `renewal` is the store's handle."""

    renewal: str


class RenewedCredentials(Response, frozen=True, kw_only=True):
    """The current credentials of a store, by the names of Hadoop's options for them."""

    options: Mapping[str, str]
    expires_at_ms: int | None
    """The time of expiry in milliseconds since the epoch, or None if unknown."""
