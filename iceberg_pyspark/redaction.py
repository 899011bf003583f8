"""Removes secrets from texts; contains the only list of secret keys and patterns.

A key is secret if it contains certain words (`s3.sse.key`, `adls.sas-token.<account>`). Texts are
searched for such keys followed by a value, in every spelling that libraries and Spark print, and
for URIs with a password. `errors.py` redacts all errors of this package, including the texts of
other libraries in the errors; loggers of `get_logger` redact their records, and
`spark/bridge/hidden_secrets.py` Spark's output. Redaction is idempotent.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote, unquote

MASK = "***"

_KEY_WORDS = (
    "passw(?:or)?d",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "credential",
    "authorization",
    "signature",
    "cookie",
    "(?:basic|x)[-_.]auth",
    # arguments of a user's own class, whose names are unknown
    r"auth\.custom\.",
    # arguments of the libraries that fsspec calls
    r"fsspec\.\w{1,20}\.",
    # headers of all requests, which often carry a key of a gateway
    r"header\.",
    "(?:private|access|account|api|storage)[-_.]{0,2}key",
    "(?:sse|kms|encryption-customer)[-_.]{0,2}key",
    "(?:en|de)cryption[-_]key",
    "connection[-_.]{0,2}string",
)
# URIs of these databases have a user and a password before the host, in one of several forms
_DATABASES = (
    "postgres(?:ql)?",
    "mysql",
    "mariadb",
    "oracle",
    "mssql",
    "sqlserver",
    "db2",
    "cockroachdb",
    "redshift",
    "snowflake",
    "clickhouse",
    "trino",
)

# check the first letter before all words: most letters begin none of the words
_KEY = f"(?=[a-fhkpstxA-FHKPSTX])(?i:{'|'.join(_KEY_WORDS)})" + r"[\w.\-]{0,48}"
_SCHEME_OF_DATABASE = (
    rf"(?i:(?:jdbc:)?(?:{'|'.join(_DATABASES)})(?:\+\w{{1,30}})?:(?:(?:thin|oci\d?):)?)(?://)?"
)
_KIND = r"(?:(?i:bearer|basic|digest|negotiate|token)\s{1,2})?"

_USER = r"[^\s/?#@:'\"]{0,200}:[^\s/@'\"]{1,400}"
_USER_OF_DATABASE = r"(?!(?:thin|oci\d?):@)[^\s'\"?;@/][^\s'\"?;]{0,400}"
_VALUE = _KIND + r"[^\s&;,)\]}'\"`]+"

# each pair: the text that stays, and the text that is hidden
_FORMS = (
    # user and password of any URI; in URIs of databases, everything before the host
    (r"://", _USER + "@"),
    (_SCHEME_OF_DATABASE, _USER_OF_DATABASE + "@"),
    # "key": "value", 'key' = 'value', key='value', `key` 'value'
    (_KEY + r"(?:\\?[\"'`]\s{0,3}(?:[:=,]|->|=>)?|\s{0,3}[:=])\s{0,3}b?\\?\"", r'[^"\\]+'),
    (_KEY + r"(?:\\?[\"'`]\s{0,3}(?:[:=,]|->|=>)?|\s{0,3}[:=])\s{0,3}b?\\?'", r"[^'\\]+"),
    (_KEY + r"[\"'`]?\s{0,3}=\s{0,3}`", r"[^`]+"),
    # key=value, as in options, connection strings and queries; key -> value, (key,Some(value))
    (_KEY + r"(?:=|\s?->\s?|,Some\()", _VALUE),
    (r"(?i:\bsig=)", _VALUE),
    # HTTP headers
    (
        rf"(?:(?i:authorization|cookie)|(?i:x-[a-z\-]{{0,40}}){_KEY})\s?:\s?",
        _KIND + r"[^\s,'\"]+",
    ),
    (r"(?i:\bbearer\s)", r"[\w.~+/=\-]{8,}"),
)

# Java supports a lookbehind for a key, but each pattern first looks behind for the character that
# ends a key, which is cheaper: the text of a plan is long, and Spark searches it in each query
_SPARK_USERS = (
    rf"(?<=[:/])(?={_USER_OF_DATABASE}@)(?<={_SCHEME_OF_DATABASE}){_USER_OF_DATABASE}(?=@)"
    rf"|(?<=://){_USER}(?=@)"
)

SPARK_KEYS_REGEX = f"(?i:{'|'.join(_KEY_WORDS)}|sig=)|{_SPARK_USERS}"
"""The pattern for Spark's `spark.redaction.regex`: matches secret keys and secret values."""

SPARK_TEXT_REGEX = (
    r"(?<=[=:/('\"])(?:"
    rf"(?<==)(?=[^\s=>])(?<={_KEY}=)(?<!/[\w.%\-]{{0,80}}=){_VALUE}"
    rf"|{_SPARK_USERS}"
    rf"|(?<=Some\()(?<={_KEY},Some\(){_VALUE}"
    rf"|(?<=['\"])(?<={_KEY}(?:['\"`]\s?(?:[:=]|->)?\s?|=)['\"])[^'\"]+"
    rf"|(?<=[sS]ig=){_VALUE})"
    rf"|(?<=-> )(?<={_KEY} -> ){_VALUE}"
)
"""The pattern for `spark.sql.redaction.string.regex`: matches each secret in the text of a plan."""

_TEXT = re.compile("|".join(f"({prefix})(?:{hidden})" for prefix, hidden in _FORMS))
_SECRET_KEY = re.compile("|".join(_KEY_WORDS), re.IGNORECASE)
_URI_KEY = re.compile(r"(?:^|[-_.])(?:uri|url)$", re.IGNORECASE)
_PATH_BEFORE = re.compile(r"/[\w.%\-]{0,80}\Z")
# URIs of these schemes have no user: in `abfss://container@account`, a container precedes the host
_NO_USERS = ("sqlite", "file", "abfs", "abfss", "wasb", "wasbs")
_URI = re.compile(
    r"((?:jdbc:)?([a-z][\w.\-]*)(?:\+\w+)?:(?:(?:thin|oci\d?):)?(?://)?)(.*)",
    re.IGNORECASE | re.DOTALL,
)
_QUERY = re.compile(r"[?;&][^?;&=]*=")
# a text without any of these words contains no secret, so the search is skipped
_HINTS = (
    *("@", "key", "string", "pass", "pwd", "sec", "tok", "cred", "auth", "sig", "cook", "bear"),
    *("head", "fsspec"),
)
_SHORTEST = 4


def is_secret_key(key: str) -> bool:
    """Return whether a property's value must not be shown.

    >>> [is_secret_key(k) for k in ("adls.sas-token.acc", "header.Authorization", "s3.endpoint")]
    [True, True, False]
    """
    return _SECRET_KEY.search(key) is not None


def redact_text(text: str) -> str:
    """Return the text without the secrets that their form reveals; partition folders stay.

    >>> redact_text("cannot open ftp://me:pw@host/t: {'s3.sse.key': 'abc'}; AccountKey=x+y==;a=b")
    "cannot open ftp://***@host/t: {'s3.sse.key': '***'}; AccountKey=***;a=b"
    """
    lower_text = text.lower()
    return _TEXT.sub(_replacement, text) if any(hint in lower_text for hint in _HINTS) else text


def _replacement(match: re.Match[str]) -> str:
    prefix = next(g for g in match.groups() if g is not None)
    if prefix.endswith("=") and _PATH_BEFORE.search(match.string, 0, match.start()):
        # a partition folder of a column whose name looks like a secret key, not a property
        return match[0]
    return f"{prefix}{MASK}@" if match[0].endswith("@") and _is_uri(prefix) else f"{prefix}{MASK}"


def _is_uri(prefix: str) -> bool:
    return prefix.endswith(("://", ":"))


def redact_uri(uri: str) -> str:
    """Return the URI without its user, password and secret parameters, for every supported form.

    >>> redact_uri("postgresql://me:pw@host/db?password=pw&ssl=1")
    'postgresql://***@host/db?password=***&ssl=1'
    >>> redact_uri("jdbc:oracle:thin:me/p@w@host:1521/db")
    'jdbc:oracle:thin:***@host:1521/db'
    """
    parts = _URI.fullmatch(uri)
    if parts is None or parts[2].lower() in _NO_USERS:
        return redact_text(uri)
    start, rest = parts[1], parts[3]
    end = _end_of_user(rest)
    return redact_text(uri) if end < 1 else f"{start}{MASK}@{redact_text(rest[end + 1 :])}"


def _end_of_user(rest: str) -> int:
    """Return the index of the last @ before a URI's parameters, or -1 if there is none."""
    query = _QUERY.search(rest)
    return rest.rfind("@", 0, len(rest) if query is None else query.start())


def redact_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties with secret values hidden, so that they can be shown or logged."""
    return {key: _redacted_value(key, value) for key, value in properties.items()}


def _redacted_value(key: str, value: str) -> str:
    if is_secret_key(key):
        return MASK
    return redact_uri(value) if _URI_KEY.search(key) else redact_text(value)


def secret_values(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the secret values of the properties, plain and URL-encoded, the longest first.

    Values shorter than four characters, `true` and `false` are left out: ordinary texts contain
    them.
    """
    spellings = {
        spelling for value in _values(properties) for spelling in (value, quote(value, ""))
    }
    secrets = (v for v in spellings if len(v) >= _SHORTEST and v.lower() not in ("true", "false"))
    return tuple(sorted(secrets, key=len, reverse=True))


def _values(properties: Mapping[str, str]) -> Iterator[str]:
    for key, value in properties.items():
        if is_secret_key(key):
            yield value
        elif _URI_KEY.search(key):
            yield from _passwords(value)


def _passwords(uri: str) -> Iterator[str]:
    parts = _URI.fullmatch(uri)
    if parts is None or parts[2].lower() in _NO_USERS:
        return
    rest = parts[3]
    user = rest[: max(_end_of_user(rest), 0)]
    password = re.split("[:/]", user, maxsplit=1)[-1] if re.search("[:/]", user) else ""
    if password:
        yield from (password, unquote(password))
    for name, value in re.findall(r"[?;&]([^?;&=]*)=([^&;]*)", rest):
        if is_secret_key(name):
            yield from (value, unquote(value))


def without_secrets(text: str, secrets: Sequence[str] = ()) -> str:
    """Return a text of another library without `secrets` and other recognizable secrets."""
    for secret in secrets:
        text = text.replace(secret, MASK)
    return redact_text(text)


def harmless_cause(
    error: BaseException | None, secrets: Sequence[str] = ()
) -> BaseException | None:
    """Return the error, for `raise ... from`, or None if any error in its chain shows a secret."""
    below = error
    while below is not None:
        texts = [str(below), *map(str, below.args), *map(str, getattr(below, "__notes__", ()))]
        if any(without_secrets(text, secrets) != text for text in texts):
            return None
        below = below.__cause__ or (None if below.__suppress_context__ else below.__context__)
    return error


def get_logger(name: str) -> logging.Logger:
    """Return a logger whose messages and tracebacks contain no secrets."""
    logger = logging.getLogger(name)
    logger.addFilter(_redact_record)
    return logger


def _redact_record(record: logging.LogRecord) -> bool:
    try:
        message = record.getMessage()
    except (TypeError, ValueError, KeyError):
        return True  # invalid arguments; the handler reports them
    text = redact_text(message)
    if text != message:
        record.msg, record.args = text, ()
    if record.exc_info:
        traceback = logging.Formatter().formatException(record.exc_info)
        text = redact_text(traceback)
        if text != traceback:
            record.exc_text, record.exc_info = text, None
    return True
