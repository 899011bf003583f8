"""The key management service of AWS, called by botocore.

Properties: `kms.region`, `kms.endpoint`, `kms.access-key-id`, `kms.secret-access-key`,
`kms.session-token`, `kms.profile-name`, else those of `client.`, else AWS's own configuration.
`kms.encryption-algorithm-spec` is Java's. The id of a table's key is a key's id, ARN or alias.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iceberg_pyspark.errors import InvalidRequestError

_ALGORITHM = "kms.encryption-algorithm-spec"


class AwsKeyManagement:
    """A `KeyManagementClient` of AWS KMS."""

    def initialize(self, properties: Mapping[str, str]) -> None:
        """See `KeyManagementClient`."""
        try:
            from botocore.config import Config  # noqa: PLC0415
            from botocore.session import Session  # noqa: PLC0415
        except ImportError as e:
            raise InvalidRequestError(
                "encryption.kms-type = aws needs botocore: pip install "
                "'iceberg-pyspark[encryption,glue]'"
            ) from e

        def value(name: str) -> str | None:
            return properties.get(f"kms.{name}") or properties.get(f"client.{name}")

        self._algorithm = properties.get(_ALGORITHM, "SYMMETRIC_DEFAULT")
        self._client: Any = Session(profile=value("profile-name")).create_client(
            "kms",
            region_name=value("region"),
            endpoint_url=properties.get("kms.endpoint"),
            aws_access_key_id=value("access-key-id"),
            aws_secret_access_key=value("secret-access-key"),
            aws_session_token=value("session-token"),
            config=Config(retries={"mode": "standard"}),
        )

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        """See `KeyManagementClient`."""
        answer = self._client.encrypt(
            KeyId=wrapping_key_id, Plaintext=key, EncryptionAlgorithm=self._algorithm
        )
        return bytes(answer["CiphertextBlob"])

    def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
        """See `KeyManagementClient`."""
        answer = self._client.decrypt(
            KeyId=wrapping_key_id, CiphertextBlob=wrapped_key, EncryptionAlgorithm=self._algorithm
        )
        return bytes(answer["Plaintext"])
