"""Certificates made for a test by the openssl command, and servers that show them."""

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

_CONFIG = """
[ca]
default_ca = own
[own]
database = {folder}/index.txt
serial = {folder}/serial
new_certs_dir = {folder}
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
[req]
distinguished_name = none
[none]
[authority]
basicConstraints = critical, CA:true
"""


@dataclass(frozen=True)
class Authority:
    """A certificate authority of a test's own.

    Args:
        folder: where its key and its certificates lie.
    """

    folder: Path

    @property
    def certificate(self) -> Path:
        return self.folder / "authority.pem"

    def context(self, name: str, begins: str = "20200101000000Z", ends: str = "20991231235959Z") -> ssl.SSLContext:
        """Return what a server shows: a certificate for `name`, such as DNS:localhost or IP:127.0.0.1."""
        key, request, certificate = (self.folder / f"leaf.{kind}" for kind in ("key", "csr", "pem"))
        _openssl(self.folder, "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", key, "-out", request, "-subj", "/CN=leaf", "-addext", f"subjectAltName={name}")  # fmt: skip
        _openssl(self.folder, "ca", "-batch", "-cert", self.certificate, "-keyfile", self.folder / "authority.key",
                 "-startdate", begins, "-enddate", ends, "-in", request, "-out", certificate, "-notext")  # fmt: skip
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return context

    def own_context(self) -> ssl.SSLContext:
        """Return what a server shows whose certificate is signed by itself."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.folder / "authority.key")
        return context


def authority(folder: Path) -> Authority:
    """Make a certificate authority in an empty folder."""
    (folder / "openssl.cnf").write_text(_CONFIG.format(folder=folder))
    (folder / "index.txt").touch()
    (folder / "serial").write_text("01")
    made = Authority(folder)
    _openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3650",
             "-keyout", folder / "authority.key", "-out", made.certificate, "-subj", "/CN=test authority",
             "-extensions", "authority")  # fmt: skip
    return made


def _openssl(folder: Path, command: str, *arguments: object) -> None:
    line = ["openssl", command, "-config", str(folder / "openssl.cnf"), *map(str, arguments)]
    subprocess.run(line, check=True, capture_output=True, timeout=60)
