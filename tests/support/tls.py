"""Certificates for servers on loopback and their clients, made by openssl."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.ports import LOOPBACK

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
# Python 3.13 verifies strictly: key identifiers and the authority's key usage are required
_CONFIGURATION = """\
[req]
prompt = no
distinguished_name = name
x509_extensions = extensions
[name]
CN = {name}
[extensions]
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
{extensions}
"""


@dataclass(frozen=True)
class Certificates:
    """An authority's certificate, and a certificate with its key of a server and of a client."""

    authority: Path
    server: tuple[Path, Path]
    client: tuple[Path, Path]

    def of_server(self, *, asks_clients: bool = False) -> ssl.SSLContext:
        """Return the context of a server, which may require a certificate of its clients."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*self.server)
        if asks_clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.authority)
        return context


def new_certificates(folder: Path) -> Certificates:
    """Create an authority and the certificates that it signs."""
    ca = "basicConstraints=critical,CA:true\nkeyUsage=critical,keyCertSign"
    authority = _signed(folder, "authority", (), ca)
    by_authority = ("-CA", str(authority[0]), "-CAkey", str(authority[1]))
    server = _signed(folder, "server", by_authority, f"subjectAltName=IP:{LOOPBACK}")
    client = _signed(folder, "client", by_authority, "extendedKeyUsage=clientAuth")
    return Certificates(authority[0], server, client)


def _signed(
    folder: Path, name: str, by_authority: tuple[str, ...], extensions: str
) -> tuple[Path, Path]:
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    configuration = folder / f"{name}.cnf"
    configuration.write_text(_CONFIGURATION.format(name=name, extensions=extensions))
    command = ["openssl", "req", "-x509", "-config", str(configuration), *_NEW_KEY, "-days", "2"]
    command += ["-keyout", str(key), "-out", str(certificate), *by_authority]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    return certificate, key
