"""Every property key and URI form that holds a secret, each with a unique secret value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count

_numbers = count(100)

CATALOG_KEYS = (
    "token",
    "credential",
    "password",
    "header.Authorization",
    "header.X-Api-Key",
    "jdbc.password",
    "auth.basic.password",
    "rest.auth.basic.password",
    "rest.client.proxy.password",
    "rest.access-key-id",
    "rest.secret-access-key",
    "rest.session-token",
    "client.secret",
    "client.secret-access-key",
    "oauth2.client-secret",
    "auth.custom.pin",
    "ssl.keystore-password",
)
STORE_KEYS = (
    "s3.access-key-id",
    "s3.secret-access-key",
    "s3.session-token",
    "s3.sse.key",
    "s3.sse-kms-key-id",
    "adls.connection-string",
    "adls.connection-string.acc",
    "adls.account-key",
    "adls.auth.shared-key.account.key",
    "adls.sas-token",
    "adls.sas-token.acc",
    "adls.sas-token.acc.dfs.core.windows.net",
    "adls.client-secret",
    "gcs.oauth2.token",
)
OTHER_KEYS = (
    "passphrase",
    "db.pwd",
    "header.Cookie",
    "header.X-Auth",
    "rest.basic.auth",
    "storage-key",
    "gcs.encryption-key",
    "kms.key",
    "private_key",
)
URI_FORMS = (
    "postgresql:me:{}@h",
    "postgresql://me:{}@h/db",
    "postgresql://me:{}/x@h/db",
    "postgresql+psycopg://me:{}@h/db?password={}",
    "postgresql://h/db?user=me&sslpassword={}&x=1",
    "mysql+pymysql://me:x@{}@h/db",
    "jdbc:postgresql://h/db?user=me&password={}",
    "jdbc:mysql://h/db?user=me&password={}",
    "jdbc:mysql://me:{}@h:3306/db",
    "jdbc:mysql://address=(host=h)(user=me)(password={})/db",
    "jdbc:oracle:thin:me/{}@h:1521/x",
    "jdbc:oracle:thin:me/{}@//h:1521/x",
    "jdbc:oracle:oci8:me/{}@h",
    "oracle:thin:me/{}@h",
    "jdbc:sqlserver://h:1433;user=me;password={};encrypt=true",
    "jdbc:sqlserver://h;user=me;password=x@{}",
    "ftp://me:{}@h/t",
    "http://me:{}@h:8181/api",
    "s3://me:{}@bucket/t",
)
TEXT_FORMS = (
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=core.windows.net",
    "BlobEndpoint=https://a.blob.core.windows.net/;SharedAccessSignature=sv=2022&sig={}&se=1",
    "https://a.blob.core.windows.net/c/f?sv=2022&sig={}&se=1",
    "https://b.s3.amazonaws.com/f?X-Amz-Credential={}%2F2026&X-Amz-Signature={}&X-Amz-Expires=9",
    "https://b.s3.amazonaws.com/f?X-Amz-Security-Token={}",
    "https://b.s3.amazonaws.com/f?AWSAccessKeyId={}&Signature={}&Expires=9",
    "https://storage.googleapis.com/b/f?X-Goog-Credential={}&X-Goog-Signature={}",
    "\\nspostgresql:me:{}@h\\n",
    "Authorization: Bearer {}",
    "Authorization: Basic {}",
    "{{'Authorization': b'AWS4-HMAC-SHA256 Credential={}/20260101, Signature={}'}}",
    "x-amz-security-token:{}",
    "x-amz-server-side-encryption-aws-kms-key-id:{}",
    "sent Bearer {} to h",
    "host=h password={} user=me",
    "host=h password='{}' user=me",
    '{{"s3.sse.key": "{}"}}',
    '{{\\"fs.s3a.secret.key\\":\\"{}\\"}}',
    "{{'adls.sas-token.acc': '{}'}}",
    "OPTIONS (`adls.account-key` '{}', 'token' = '{}')",
    "SET `spark.sql.catalog.x.s3.sse.key`=`{}`",
    "SetCommand (spark.sql.catalog.x.s3.sse.key,Some({}))",
    "Map(adls.connection-string -> {}, a -> b)",
    "S3FileSystem(secret='{}', token={}, anon=False)",
    "PYICEBERG_CATALOG__LAKE__S3__SECRET_ACCESS_KEY={}",
    "fs.azure.account.key.acc.dfs.core.windows.net={}",
    "fs.azure.sas.fixed.token.acc={}",
)


def new_secret() -> str:
    """Return a value that no text contains by accident."""
    return f"Zq{next(_numbers)}xK9w"


def filled(form: str) -> tuple[str, str]:
    """Return a URI or text of this form, and the secret in it."""
    secret = new_secret()
    return form.format(*(secret for _ in range(form.count("{}")))), secret


def of_keys(keys: Iterable[str]) -> dict[str, str]:
    """Return properties with these keys, each with a new secret as its value."""
    return {key: new_secret() for key in keys}


def found_in(text: str, secrets: Mapping[str, str]) -> list[str]:
    """Return the names of the secrets that a text shows."""
    return [name for name, secret in secrets.items() if secret in text]
