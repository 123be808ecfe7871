"""Certificates of the tests: an authority, and what it issues, as PEM files."""

import datetime
import ipaddress
import os

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)


class Issued:
    """A certificate and its key, in files."""

    def __init__(self, certificate, key, path):
        self.certificate, self.key = certificate, key
        self.pem, self.key_pem = f"{path}.pem", f"{path}.key"
        with open(self.pem, "wb") as file:
            file.write(certificate.public_bytes(serialization.Encoding.PEM))
        with open(self.key_pem, "wb") as file:
            file.write(key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption()))

    @property
    def der(self):
        return self.certificate.public_bytes(serialization.Encoding.DER)

    @property
    def line(self):
        """The configuration's line."""
        return f"certificate file:{self.pem} file:{self.key_pem}"


class Authority:
    """Issues certificates into a directory."""

    def __init__(self, directory, name="root"):
        self.directory, self.name = directory, name
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name} authority")])
        certificate = self._builder(self.subject, self.key, -1, 30).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        ).sign(self.key, hashes.SHA256())
        self.root = Issued(certificate, self.key, os.path.join(directory, name))

    @property
    def pem(self):
        return self.root.pem

    def _builder(self, subject, key, begin, end):
        now = datetime.datetime.now(datetime.timezone.utc)
        return (
            x509.CertificateBuilder().subject_name(subject).issuer_name(self.subject)
            .public_key(key.public_key()).serial_number(x509.random_serial_number())
            .not_valid_before(now + begin * DAY).not_valid_after(now + end * DAY)
        )

    def issue(self, label, *names, key="ec", begin=-1, end=20, client=False):
        """A leaf for these names (or numeric addresses), valid from and to so many days from
        now."""
        if key == "ec":
            private = ec.generate_private_key(ec.SECP256R1())
        else:
            private = rsa.generate_private_key(65537, 2048)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, label)])
        builder = self._builder(subject, private, begin, end).add_extension(
            x509.BasicConstraints(ca=False, path_length=None), critical=True)
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
            critical=False)
        path = os.path.join(self.directory, f"{self.name}-{label}")
        return Issued(builder.sign(self.key, hashes.SHA256()), private, path)


def _general(name):
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
