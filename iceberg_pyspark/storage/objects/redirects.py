"""Keep the requests of obstore at the host of a store's endpoint, whatever the server answers.

obstore follows redirects and has no option against it: a server could send a request on to any
host, with the session token in a header and a SAS token in `Referer`, and the answer of that host
would be the file. But obstore can have a proxy for all hosts except a list. So the endpoint's host
is on the list, and the proxy is an address at which no program can listen: a request to another
host fails before a byte is sent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

_NO_ADDRESS = "127.0.0.1:0"
_REDIRECT = re.compile(
    rf"(?<![\w.]){re.escape(_NO_ADDRESS)}(?!\d)|redirect without LOCATION|status code: 30[12378]\b"
)

_PROXIES = frozenset(("http", "https", "all"))
_LINK_LOCAL = (
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "fd00:ec2::254",
    "fd00:ec2::23",
)
_GOOGLE_HOSTS = ("googleapis.com", "accounts.google.com", "metadata.google.internal")
_AZURE_HOSTS = (
    "login.microsoftonline.com",
    "login.microsoftonline.us",
    "login.partner.microsoftonline.cn",
    "login.chinacloudapi.cn",
)
# obstore reads these where no property sets the address
_ENDPOINT_VARIABLES = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL",),
    "azure": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
_ADDRESS_VARIABLES = {
    "s3": (
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_ENDPOINT_URL_STS",
        "AWS_METADATA_ENDPOINT",
    ),
    "gs": ("GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP"),
    "azure": ("AZURE_AUTHORITY_HOST", "IDENTITY_ENDPOINT", "MSI_ENDPOINT"),
}


def without_redirects(
    kind: str,
    endpoint: str | None,
    options: Mapping[str, Any],
    *,
    region: str | None,
    environment_credentials: bool,
) -> dict[str, Any]:
    """Return obstore's client options with which no host but the endpoint's gets a request.

    Without an endpoint, also in the environment, the store is the cloud's own, which is trusted.
    With a proxy, of the options or of the environment, the options are unchanged: requests leave
    through the proxy only. If `environment_credentials`, obstore asks the cloud for credentials
    with the same client, so the hosts of these requests are reachable too.
    """
    kind = kind if kind in _ENDPOINT_VARIABLES else "azure"
    endpoints = [endpoint] if endpoint else map(os.environ.get, _ENDPOINT_VARIABLES[kind])
    hosts = [host for host in map(_host, endpoints) if host is not None]
    if not hosts or "proxy_url" in options:
        return dict(options)
    has_proxy = not _PROXIES.isdisjoint(getproxies_environment())
    if has_proxy and (environment_credentials or not all(map(proxy_bypass, hosts))):
        return dict(options)
    if environment_credentials:
        hosts += _credential_hosts(kind, region)
    return {
        **options,
        "proxy_url": f"http://{_NO_ADDRESS}",
        "proxy_excludes": ",".join(dict.fromkeys(hosts)),
    }


def refuses_redirects(client_options: Mapping[str, Any]) -> bool:
    """Return whether options of `without_redirects` keep requests at hosts of a list."""
    return str(client_options.get("proxy_url", "")).endswith(_NO_ADDRESS)


def redirect_error(text: str) -> str | None:
    """Return what to do if the text of obstore's error tells of a redirect, or None."""
    if _REDIRECT.search(text) is None:
        return None
    return (
        "the store's server answers with a redirect; redirects are not followed, as credentials "
        "would go along: set s3.endpoint, gcs.service.host or adls.blob-storage-authority to the "
        "address that has the bucket, and s3.region (or client.region) to the bucket's region"
    )


def _host(address: str | None) -> str | None:
    try:
        host = urlsplit(address).hostname if address and "://" in address else None
    except ValueError:
        # obstore refuses the address by itself
        return None
    if host is None or host.isascii():
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return None


def _credential_hosts(kind: str, region: str | None) -> Iterable[str]:
    environment = os.environ
    match kind:
        case "s3":
            if "AWS_ACCESS_KEY_ID" in environment and "AWS_SECRET_ACCESS_KEY" in environment:
                return
            regions = (region, environment.get("AWS_REGION"), environment.get("AWS_DEFAULT_REGION"))
            yield from (f"sts.{r}.amazonaws.com" for r in (*regions, "us-east-1") if r)
        case "gs":
            yield from _GOOGLE_HOSTS
        case _:
            yield from _AZURE_HOSTS
    yield from _LINK_LOCAL
    for variable in _ADDRESS_VARIABLES[kind]:
        address = environment.get(variable)
        if address and (host := _host(address if "://" in address else f"http://{address}")):
            yield host
