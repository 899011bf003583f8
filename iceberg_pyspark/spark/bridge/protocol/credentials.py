"""Questions about credentials that expire while tasks of the JVM use them."""

from __future__ import annotations

from iceberg_pyspark.spark.bridge.protocol.messages import Answer, Question


class CredentialsRenew(Question, frozen=True, kw_only=True):
    """The request for new credentials of a store; `renewal` is the store's handle."""

    renewal: str


class RenewedCredentials(Answer, frozen=True, kw_only=True):
    """The current credentials for a store in S3."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None
    expires_at_ms: int | None
    """The time of expiry in milliseconds since the epoch, or None if unknown."""
