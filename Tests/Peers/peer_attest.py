#!/usr/bin/env python3
"""An App Attest device and verifier in Python: the tests' second opinion.

Written from Apple's documents and from real objects, with `cryptography` and `cbor2`, and shares no
line with the Swift code. It is for tests only: its root is nobody's.

As a library:

    root = Root()                                # a private root and intermediate
    root.pem()                                   # the root certificate, PEM text
    device = Device(root, "TEAM123456.com.example.shop", "development", "ios17")
    device.key_id                                # 32 bytes
    device.public_key                            # 65 bytes, 04 || x || y
    device.attest(client_data_hash)              # attestation object, bytes; at= unix seconds
    device.assert_(client_data_hash)             # assertion, bytes; the counter rises by one
    device.assert_(client_data_hash, counter=9)  # the device's own goes there too
    device.skip(3)                               # three assertions that nobody saw
    refresh_receipt(root, receipt, metric)       # what the exchange gives for a receipt

    verify_attestation(object, client_data_hash, key_id, app_ids, environment, root_pem, at)
    verify_assertion(object, client_data_hash, public_key, app_id, previous_counter)

The two verifiers return a dictionary or raise `Refused`, whose `reason` is the failed step:
attestation_malformed, certificate_chain, certificate_expired, certificate_not_yet_valid,
nonce_mismatch, key_id_mismatch, rp_id_mismatch, counter_not_zero, aaguid_mismatch,
credential_id_mismatch, cose_key_mismatch; assertion_malformed, rp_id_mismatch, counter_not_greater,
signature_invalid.

`SHAPES` names what a device can look like: ios14 … ios27, macos27, and variants.

As a command, JSON in and out, bytes as base64, the device's whole state in its JSON:

    peer_attest.py new [--app-id ID] [--environment E] [--shape S]            > state.json
    peer_attest.py attest  < {"state", "clientDataHash", "at"?}               > {"object", "state"}
    peer_attest.py assert  < {"state", "clientDataHash", "counter"?}          > {"object", "state"}
    peer_attest.py verify-attestation < {"object", "clientDataHash", "keyID", "appIDs",
                                         "environment", "root", "at"}         > {"accepted", …}
    peer_attest.py verify-assertion   < {"object", "clientDataHash", "publicKey", "appID",
                                         "previousCounter"}                   > {"accepted", …}
    peer_attest.py lines   also takes "shapes" and {"command": "receipt", "receipt"}: whether a
                           receipt's signature and chain hold, and its fields; {"command":
                           "refresh-receipt", "root", "receipt", "metric", "at"?, "notBefore"?}:
                           what the exchange gives for it; one JSON object a
                           line with "command" beside the members above; answers
                           in the same order, one a line
"""

import argparse
import base64
import datetime
import hashlib
import json
import secrets
import sys
import time

import cbor2
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

APPLE = "1.2.840.113635.100."
AAGUIDS = {
    "development": b"appattestdevelop",
    "production": b"appattest" + bytes(7),
}
# flags of attestations and assertions; which signed extensions; which leaf.
SHAPES = {
    "ios14": dict(flags=0x40, os="14.2", build="18B92", leaf="old"),
    "ios15": dict(flags=0x40, os="15.7", build="19H12", leaf="old"),
    "ios16": dict(flags=0x40, os="16.2", build="20C65", leaf="middle"),
    "ios17": dict(flags=0x40, os="17.4.1", build="21E236", leaf="middle"),
    "ios18": dict(flags=0x40, os="18.5", build="22F76", leaf="middle"),
    "ios18-cdhash": dict(flags=0x40, os="18.5", build="22F76", leaf="middle", cd_hash="unsigned"),
    "ios26": dict(flags=0x40, os="26.2", build="23C55", leaf="new"),
    "ios26-cdhash": dict(flags=0x40, os="26.2", build="23C55", leaf="new", cd_hash="unsigned"),
    "ios27": dict(flags=0xC0, os="27.0.1", build="24A446", leaf="new", version="1314", category=3),
    "ios27-beta": dict(flags=0x40, os="27.0", build="24A325b", leaf="new", version="1", category=1),
    "ios27-oldsdk": dict(flags=0x40, os="27.0.1", build="24A446", leaf="new"),
    "macos27": dict(flags=0x40, os="27.0", build="26A5378n", leaf="new", cd_hash="signed",
                    category=6,
                    platform="macosx"),
}


class Refused(Exception):
    """A verification that did not hold; `reason` is the step."""

    def __init__(self, reason, detail=""):
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


def sha256(data):
    return hashlib.sha256(data).digest()


# DER by hand, for what `cryptography` has no words for.


def tlv(tag, content):
    """One DER element; `tag` is the identifier octets or one octet."""
    head = bytes([tag]) if isinstance(tag, int) else tag
    size = len(content)
    if size < 0x80:
        return head + bytes([size]) + content
    octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return head + bytes([0x80 | len(octets)]) + octets + content


def sequence(*parts):
    return tlv(0x30, b"".join(parts))


def octets(content):
    return tlv(0x04, content)


def integer(value):
    return tlv(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def oid(text):
    first, second, *rest = [int(part) for part in text.split(".")]
    content = b""
    for arc in [40 * first + second, *rest]:
        groups = [arc & 0x7F]
        while arc := arc >> 7:
            groups.insert(0, 0x80 | arc & 0x7F)
        content += bytes(groups)
    return tlv(0x06, content)


def tagged(number, content):
    """An explicit context tag, in the high form where the number needs it."""
    if number < 31:
        return tlv(0xA0 | number, content)
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.insert(0, 0x80 | number & 0x7F)
    return tlv(bytes([0xBF, *groups]), content)


# The device.


def name(common, unit=None):
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if unit:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit))
    parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Peer Test"))
    return x509.Name(parts)


def moment(seconds):
    return datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc).replace(tzinfo=None)


def builder(subject, issuer, key, serial, start, end):
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(moment(start))
        .not_valid_after(moment(end))
    )


def authority_usage():
    return x509.KeyUsage(False, False, False, False, False, True, True, False, False)


def leaf_usage():
    return x509.KeyUsage(True, True, True, True, False, False, False, False, False)


def der(certificate):
    return certificate.public_bytes(serialization.Encoding.DER)


def certificate_pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def private_pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def load_private(pem):
    return serialization.load_pem_private_key(pem.encode(), None)


class Root:
    """A private root and its intermediate, both P-384, valid from `start` for ten years; below the
    same root another intermediate and the signer of receipts, both P-256."""

    def __init__(self, start=None):
        start = int(start if start is not None else time.time() - 30 * 86400)
        end = start + 3650 * 86400
        self.key = ec.generate_private_key(ec.SECP384R1())
        self.intermediate_key = ec.generate_private_key(ec.SECP384R1())
        subject = name("Peer Root")
        self.certificate = (
            builder(subject, subject, self.key, secrets.randbits(120), start, end)
            .add_extension(x509.BasicConstraints(True, None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), False)
            .add_extension(authority_usage(), critical=True)
            .sign(self.key, hashes.SHA384())
        )
        self.intermediate = (
            builder(name("Peer Intermediate"), subject, self.intermediate_key,
                    secrets.randbits(120), start, end)
            .add_extension(x509.BasicConstraints(True, 0), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), False)
            .add_extension(authority_usage(), critical=True)
            .sign(self.key, hashes.SHA384())
        )
        self.receipt_key = ec.generate_private_key(ec.SECP256R1())
        issuer_key = ec.generate_private_key(ec.SECP256R1())
        mark = x509.UnrecognizedExtension(x509.ObjectIdentifier(APPLE + "6.2.3"), b"\x05\0")
        self.receipt_issuer = (
            builder(name("Peer Receipt Intermediate"), subject, issuer_key,
                    secrets.randbits(120), start, end)
            .add_extension(x509.BasicConstraints(True, 0), critical=True)
            .add_extension(authority_usage(), critical=True)
            .add_extension(mark, critical=False)
            .sign(self.key, hashes.SHA384())
        )
        mark = x509.UnrecognizedExtension(x509.ObjectIdentifier(APPLE + "12.15"), b"\x05\0")
        self.receipt_signer = (
            builder(name("Peer Receipt Signing"), self.receipt_issuer.subject, self.receipt_key,
                    secrets.randbits(120), start, end)
            .add_extension(x509.BasicConstraints(False, None), critical=True)
            .add_extension(mark, critical=False)
            .sign(issuer_key, hashes.SHA256())
        )

    def pem(self):
        """The root certificate, PEM text."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def to_json(self):
        return {
            "certificate": self.pem(),
            "intermediate": certificate_pem(self.intermediate),
            "key": private_pem(self.key),
            "intermediateKey": private_pem(self.intermediate_key),
            "receiptIssuer": certificate_pem(self.receipt_issuer),
            "receiptSigner": certificate_pem(self.receipt_signer),
            "receiptKey": private_pem(self.receipt_key),
        }

    @classmethod
    def from_json(cls, state):
        self = cls.__new__(cls)
        self.certificate = x509.load_pem_x509_certificate(state["certificate"].encode())
        self.intermediate = x509.load_pem_x509_certificate(state["intermediate"].encode())
        self.key = load_private(state["key"])
        self.intermediate_key = load_private(state["intermediateKey"])
        self.receipt_issuer = x509.load_pem_x509_certificate(state["receiptIssuer"].encode())
        self.receipt_signer = x509.load_pem_x509_certificate(state["receiptSigner"].encode())
        self.receipt_key = load_private(state["receiptKey"])
        return self


class Device:
    """One key of one app on one simulated device."""

    def __init__(self, root, app_id, environment="development", shape="ios17", key=None, counter=0):
        if shape not in SHAPES:
            raise ValueError(f"no shape {shape}")
        self.root = root
        self.app_id = app_id
        self.environment = environment
        self.shape = shape
        self.key = key or ec.generate_private_key(ec.SECP256R1())
        self.counter = counter
        self.cd_hash = sha256(b"code directory of " + app_id.encode())

    @property
    def public_key(self):
        """The public point, 65 bytes."""
        return self.key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)

    @property
    def key_id(self):
        """SHA-256 of the point, 32 bytes."""
        return sha256(self.public_key)

    def extensions(self):
        look = SHAPES[self.shape]
        members = {}
        if look.get("cd_hash") == "signed":
            members["apple_cd_hash_hash_01"] = self.cd_hash
            members["apple_cd_hash_type_01"] = b"\x02"
        if "version" in look:
            members["apple_bundle_version_01"] = look["version"]
        if "category" in look:
            members["apple_validation_category_01"] = look["category"].to_bytes(4, "little")
        return cbor2.dumps(members) if members else b""

    def head(self, counter):
        return (sha256(self.app_id.encode()) + bytes([SHAPES[self.shape]["flags"]])
                + counter.to_bytes(4, "big"))

    def attestation_data(self, counter=0):
        point = self.public_key
        cose = cbor2.dumps({1: 2, 3: -7, -1: 1, -2: point[1:33], -3: point[33:]})
        return (self.head(counter) + AAGUIDS[self.environment] + (32).to_bytes(2, "big")
                + self.key_id + cose + self.extensions())

    def leaf(self, nonce, at):
        look = SHAPES[self.shape]
        issued = int(at * 1000) + secrets.randbelow(1000)
        subject = name(self.key_id.hex(), "AAA Certification")
        certificate = (
            builder(subject, self.root.intermediate.subject, self.key, issued,
                    at - 86400, at + 2 * 86400)
            .add_extension(x509.BasicConstraints(False, None), critical=True)
            .add_extension(leaf_usage(), critical=True)
        )
        if look["leaf"] == "new":
            certificate = certificate.add_extension(
                x509.ExtendedKeyUsage([x509.ObjectIdentifier(APPLE + "4.24")]), critical=False)
        for suffix, value in self.apple_extensions(look, nonce):
            certificate = certificate.add_extension(
                x509.UnrecognizedExtension(x509.ObjectIdentifier(APPLE + suffix), value), False)
        return certificate.sign(self.root.intermediate_key, hashes.SHA256())

    def apple_extensions(self, look, nonce):
        mac = look.get("platform") == "macosx"
        key_fields = [tagged(4, integer(13 if mac else 10))]
        key_fields += [tagged(n, integer(0)) for n in range(1200, 1204)]
        key_fields.append(tagged(1204, octets(self.app_id.encode())))
        if look["leaf"] != "new":
            key_fields.append(tagged(5, octets(b"sks ")))
        key_fields.append(tagged(1206, integer(4 if look["leaf"] == "new" else 5)))
        key_fields += [tagged(n, integer(0)) for n in (1207, 1209, 1210)]
        system = [tagged(1400, octets(look["os"].encode()))]
        if look["leaf"] != "old":
            system.append(tagged(1104, integer(2)))
            system.append(tagged(1403, octets(look["build"].encode())))
            system.append(tagged(1405, octets(look["os"].encode())))
        if look["leaf"] == "new":
            system.append(tagged(1026, octets(look.get("platform", "iphoneos").encode())))
        values = [
            ("8.5", sequence(*key_fields)),
            ("8.7", sequence(*system)),
            ("8.2", sequence(tagged(1, octets(nonce)))),
        ]
        if look["leaf"] == "new":
            values.append(("8.6", sequence(tagged(3, octets(b"a list of access rules")))))
        return values

    def receipt(self, leaf, client_data_hash, at):
        """The receipt of an attestation with the certificate `leaf`."""
        fields = [
            (2, self.app_id.encode()), (3, der(leaf)), (4, client_data_hash),
            (5, base64.b64encode(secrets.token_bytes(64))), (6, b"ATTEST"),
            (7, b"production" if self.environment == "production" else b"sandbox"),
            (12, receipt_time(at)), (21, receipt_time(at + 90 * 86400)),
        ]
        return make_receipt(self.root, fields)

    def attest(self, client_data_hash, at=None):
        """An attestation object over `client_data_hash`, its leaf issued at `at` (unix seconds)."""
        at = time.time() if at is None else at
        data = self.attestation_data()
        leaf = self.leaf(sha256(data + client_data_hash), at)
        members = {"fmt": "apple-appattest"}
        if SHAPES[self.shape].get("cd_hash") == "unsigned":
            members["cdHash"] = {"hash": self.cd_hash[:20], "type": b"\x02"}
        members["attStmt"] = {
            "x5c": [der(leaf), der(self.root.intermediate)],
            "receipt": self.receipt(leaf, client_data_hash, at),
        }
        members["authData"] = data
        return cbor2.dumps(members)

    def assert_(self, client_data_hash, counter=None):
        """An assertion over `client_data_hash`; the counter rises by one or goes to `counter`."""
        self.counter = self.counter + 1 if counter is None else counter
        data = self.head(self.counter) + self.extensions()
        nonce = sha256(data + client_data_hash)
        members = {}
        if SHAPES[self.shape].get("cd_hash") == "unsigned":
            members["cdHash"] = {"hash": self.cd_hash[:20], "type": b"\x02"}
        members["signature"] = self.key.sign(nonce, ec.ECDSA(hashes.SHA256()))
        members["authenticatorData"] = data
        return cbor2.dumps(members)

    def skip(self, count):
        """Lets `count` counter values go by."""
        self.counter += count

    def to_json(self):
        return {
            "root": self.root.to_json(), "appID": self.app_id, "environment": self.environment,
            "shape": self.shape, "key": private_pem(self.key), "counter": self.counter,
            "keyID": base64.b64encode(self.key_id).decode(),
            "publicKey": base64.b64encode(self.public_key).decode(),
        }

    @classmethod
    def from_json(cls, state):
        return cls(Root.from_json(state["root"]), state["appID"], state["environment"],
                   state["shape"], load_private(state["key"]), state["counter"])


# Receipts.


def receipt_time(at):
    """`at` (unix seconds) as receipts write it: trailing zeros of the fraction dropped."""
    whole, thousandths = divmod(round(at * 1000), 1000)
    fraction = f".{thousandths:03}".rstrip("0").rstrip(".")
    return (moment(whole).strftime("%Y-%m-%dT%H:%M:%S") + fraction + "Z").encode()


def make_receipt(root, fields):
    """A CMS SignedData in BER over `fields`, pairs of type and bytes, as Apple's are: indefinite
    lengths, the content in pieces, no signed attributes."""
    payload = tlv(0x31, b"".join(
        sequence(integer(kind), integer(1), octets(value)) for kind, value in fields))
    chunks = b"".join(octets(payload[i:i + 1000]) for i in range(0, len(payload), 1000))
    algorithm = sequence(oid("2.16.840.1.101.3.4.2.1"), tlv(0x05, b""))
    signer = root.receipt_signer
    information = sequence(
        integer(1), sequence(signer.issuer.public_bytes(), integer(signer.serial_number)),
        algorithm, sequence(oid("1.2.840.10045.4.3.2")),
        octets(root.receipt_key.sign(payload, ec.ECDSA(hashes.SHA256()))))
    certificates = b"".join(map(der, (signer, root.receipt_issuer, root.certificate)))
    end = b"\0\0"
    content = (b"\x30\x80" + oid("1.2.840.113549.1.7.1") + b"\xa0\x80\x24\x80" + chunks
               + end + end + end)
    signed = (b"\x30\x80" + integer(1) + tlv(0x31, algorithm) + content
              + b"\xa0\x80" + certificates + end + tlv(0x31, information) + end)
    return b"\x30\x80" + oid("1.2.840.113549.1.7.2") + b"\xa0\x80" + signed + end + end


def elements(data, at=0, end=None):
    """The BER elements of `data[at:end]` as (tag, contents), up to its end or two zeros; behind the
    last one the index after it."""
    found = []
    end = len(data) if end is None else end
    while at < end:
        tag, size, at = data[at], data[at + 1], at + 2
        if tag == 0:
            break
        if size == 0x80:
            start = at
            _, at = elements(data, at, end)
            found.append((tag, data[start:at - 2]))
            continue
        if size > 0x80:
            count = size & 0x7F
            size, at = int.from_bytes(data[at:at + count], "big"), at + count
        found.append((tag, data[at:at + size]))
        at += size
    return found, at


def receipt_fields(data):
    """The fields of a receipt in their order, pairs of type and bytes; nothing is verified."""
    signed = elements(elements(elements(data)[0][0][1])[0][1][1])[0][0][1]
    content = elements(elements(elements(signed)[0][2][1])[0][1][1])[0][0]
    payload = content[1]
    if content[0] == 0x24:
        payload = b"".join(piece for _, piece in elements(payload)[0])
    fields = []
    for _, item in elements(elements(payload)[0][0][1])[0]:
        kind, _, value = elements(item)[0]
        fields.append((int.from_bytes(kind[1], "big"), value[1]))
    return fields


def refresh_receipt(root, data, metric, at=None, not_before=None):
    """The receipt that the exchange gives for `data`: kind RECEIPT, made at `at`, with `metric`,
    and not to be asked again before `not_before` (a day later)."""
    at = time.time() if at is None else at
    old = dict(receipt_fields(data))
    # What the exchange does to field 4: bytes read as text and written again.
    garbled = old[4].decode(errors="replace").encode()
    return make_receipt(root, [
        (17, str(metric).encode()), (6, b"RECEIPT"), (2, old[2]), (3, old[3]), (4, garbled),
        (5, base64.b64encode(secrets.token_bytes(64))), (7, old[7]), (12, receipt_time(at)),
        (19, receipt_time(at + 86400 if not_before is None else not_before)),
        (21, receipt_time(at + 90 * 86400)),
    ])


# The verifier.

CRITICAL_KNOWN = {"2.5.29.19", "2.5.29.15", "2.5.29.37", APPLE + "8.2"}
SKEW = 300


def decode(data, limit, reason):
    """The one strict CBOR map `data` is: what encoding it again gives back byte for byte."""
    if len(data) > limit:
        raise Refused(reason, "too large")
    try:
        value = cbor2.loads(data)
        again = cbor2.dumps(value)
    except Exception as error:
        raise Refused(reason, str(error)) from error
    if not isinstance(value, dict) or again != data:
        raise Refused(reason, "not a map, or not in the one strict form")
    return value


def constraints(certificate):
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        return None


def verify_chain(x5c, root, at):
    try:
        leaf, intermediate = [x509.load_der_x509_certificate(item) for item in x5c]
        for certificate in (leaf, intermediate):
            for extension in certificate.extensions:
                if extension.critical and extension.oid.dotted_string not in CRITICAL_KNOWN:
                    raise Refused("certificate_chain", "unknown critical extension")
        leaf_key = leaf.public_key()
        is_elliptic = isinstance(leaf_key, ec.EllipticCurvePublicKey)
        if not (is_elliptic and leaf_key.curve.name == "secp256r1"):
            raise Refused("certificate_chain", "leaf key")
        if constraints(leaf) is not None and constraints(leaf).ca:
            raise Refused("certificate_chain", "leaf is an authority")
        for issuer in (intermediate, root):
            if constraints(issuer) is None or not constraints(issuer).ca:
                raise Refused("certificate_chain", "issuer is no authority")
        leaf.verify_directly_issued_by(intermediate)
        intermediate.verify_directly_issued_by(root)
    except Refused:
        raise
    except Exception as error:
        raise Refused("certificate_chain", repr(error)) from error
    for certificate in (leaf, intermediate, root):
        if at + SKEW < certificate.not_valid_before_utc.timestamp():
            raise Refused("certificate_not_yet_valid")
        if at - SKEW > certificate.not_valid_after_utc.timestamp():
            raise Refused("certificate_expired")
    return leaf


def read_extensions(rest):
    """The signed members of OS 27 as a dictionary, None when there are none, or "unreadable"."""
    if not rest:
        return None
    try:
        members = decode(rest, 4096, "unreadable")
    except Refused:
        return "unreadable"
    category = members.get("apple_validation_category_01")
    if isinstance(category, bytes):
        category = int.from_bytes(category, "little")
    return {
        "bundleVersion": members.get("apple_bundle_version_01"),
        "category": category,
        "cdHash": (
            members["apple_cd_hash_hash_01"].hex() if "apple_cd_hash_hash_01" in members else None),
    }


def verify_attestation(data, client_data_hash, key_id, app_ids, environment, root_pem, at):
    """The facts of a good attestation object, or `Refused`."""
    bad = "attestation_malformed"
    value = decode(data, 16384, bad)
    statement = value.get("attStmt")
    auth = value.get("authData")
    if value.get("fmt") != "apple-appattest" or not isinstance(statement, dict):
        raise Refused(bad, "fmt or attStmt")
    x5c, receipt = statement.get("x5c"), statement.get("receipt")
    if not (isinstance(x5c, list) and len(x5c) == 2 and all(isinstance(c, bytes) for c in x5c)):
        raise Refused(bad, "x5c")
    if not isinstance(receipt, bytes) or not isinstance(auth, bytes):
        raise Refused(bad, "receipt or authData")
    root = x509.load_pem_x509_certificate(root_pem.encode())
    leaf = verify_chain(x5c, root, at)

    nonce = sha256(auth + client_data_hash)
    found = [e.value.value for e in leaf.extensions if e.oid.dotted_string == APPLE + "8.2"]
    if found != [bytes.fromhex("3024a1220420") + nonce]:
        raise Refused("nonce_mismatch")
    point = leaf.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    if sha256(point) != key_id:
        raise Refused("key_id_mismatch")

    if len(auth) < 164 or auth[53:55] != b"\x00\x20":
        raise Refused(bad, "authenticator data")
    app_id = next((a for a in app_ids if sha256(a.encode()) == auth[:32]), None)
    if app_id is None:
        raise Refused("rp_id_mismatch")
    if auth[33:37] != bytes(4):
        raise Refused("counter_not_zero")
    if auth[37:53] != AAGUIDS[environment]:
        raise Refused("aaguid_mismatch")
    if auth[55:87] != key_id:
        raise Refused("credential_id_mismatch")
    cose = decode(auth[87:164], 77, bad)
    if cose != {1: 2, 3: -7, -1: 1, -2: point[1:33], -3: point[33:]}:
        raise Refused("cose_key_mismatch")
    return {"appID": app_id, "publicKey": base64.b64encode(point).decode(),
            "extensions": read_extensions(auth[164:])}


def verify_assertion(data, client_data_hash, public_key, app_id, previous_counter):
    """The facts of a good assertion, or `Refused`."""
    value = decode(data, 4096, "assertion_malformed")
    signature, auth = value.get("signature"), value.get("authenticatorData")
    if not isinstance(signature, bytes) or not isinstance(auth, bytes) or len(auth) < 37:
        raise Refused("assertion_malformed")
    if auth[:32] != sha256(app_id.encode()):
        raise Refused("rp_id_mismatch")
    counter = int.from_bytes(auth[33:37], "big")
    if counter <= previous_counter:
        raise Refused("counter_not_greater")
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public_key)
    try:
        key.verify(signature, sha256(auth + client_data_hash), ec.ECDSA(hashes.SHA256()))
    except InvalidSignature as error:
        raise Refused("signature_invalid") from error
    return {"counter": counter, "extensions": read_extensions(auth[37:])}


def read_receipt(data):
    """The fields of a receipt whose CMS signature and certificates hold up to the last of them."""
    from asn1crypto import cms, core

    signed = cms.ContentInfo.load(data)["content"]
    content = signed["encap_content_info"]["content"].native
    chain = [
        x509.load_der_x509_certificate(c.chosen.untag().dump()) for c in signed["certificates"]]
    information = signed["signer_infos"][0]
    if len(signed["signer_infos"]) != 1 or len(information["signed_attrs"]) != 0:
        raise Refused("receipt_invalid", "signer")
    serial = information["sid"].chosen["serial_number"].native
    signer = next(c for c in chain if c.serial_number == serial)
    try:
        signer.public_key().verify(
            information["signature"].native, content, ec.ECDSA(hashes.SHA256()))
        while signer.issuer != signer.subject:
            issuer = next(c for c in chain if c.subject == signer.issuer)
            signer.verify_directly_issued_by(issuer)
            signer = issuer
        signer.verify_directly_issued_by(signer)
    except InvalidSignature as error:
        raise Refused("receipt_invalid", "signature") from error
    fields = {}
    rest = core.Any.load(content).contents
    while rest:
        item = core.Sequence.load(rest)
        kind, _, value = [core.load(part.dump()) if hasattr(part, "dump") else part for part in (
            item[0], item[1], item[2])]
        fields[str(kind.native)] = base64.b64encode(value.native).decode()
        rest = rest[len(item.dump()):]
    return {"fields": fields}


# The command.


def b64(text):
    return base64.b64decode(text, validate=True)


def judged(call, *arguments):
    try:
        return {"accepted": True, **call(*arguments)}
    except Refused as refusal:
        return {"accepted": False, "reason": refusal.reason, "detail": str(refusal)}


def run(request):
    """The answer to one command, both dictionaries."""
    command = request["command"]
    if command == "shapes":
        return {"shapes": list(SHAPES)}
    if command == "new":
        root = Root.from_json(request["root"]) if "root" in request else Root()
        return Device(root, request.get("appID", "PEER123456.com.example.peer"),
                      request.get("environment", "development"),
                      request.get("shape", "ios17")).to_json()
    if command in ("attest", "assert"):
        device = Device.from_json(request["state"])
        digest = b64(request["clientDataHash"])
        if command == "attest":
            made = device.attest(digest, request.get("at"))
        else:
            made = device.assert_(digest, request.get("counter"))
        return {"object": base64.b64encode(made).decode(), "state": device.to_json()}
    if command == "verify-attestation":
        return judged(verify_attestation, b64(request["object"]), b64(request["clientDataHash"]),
                      b64(request["keyID"]), request["appIDs"], request["environment"],
                      request["root"], request["at"])
    if command == "verify-assertion":
        return judged(verify_assertion, b64(request["object"]), b64(request["clientDataHash"]),
                      b64(request["publicKey"]), request["appID"], request["previousCounter"])
    if command == "refresh-receipt":
        made = refresh_receipt(Root.from_json(request["root"]), b64(request["receipt"]),
                               request["metric"], request.get("at"), request.get("notBefore"))
        return {"receipt": base64.b64encode(made).decode()}
    if command == "receipt":
        return judged(read_receipt, b64(request["receipt"]))
    raise SystemExit(f"peer_attest.py: no command {command}")


def main():
    parser = argparse.ArgumentParser(description="App Attest device and verifier for tests")
    parser.add_argument("command", choices=["new", "attest", "assert", "verify-attestation",
                                            "verify-assertion", "shapes", "lines"])
    parser.add_argument("--app-id", default="PEER123456.com.example.peer")
    parser.add_argument("--environment", choices=list(AAGUIDS), default="development")
    parser.add_argument("--shape", choices=list(SHAPES), default="ios17")
    options = parser.parse_args()
    if options.command == "lines":
        for line in sys.stdin:
            print(json.dumps(run(json.loads(line))), flush=True)
        return
    if options.command in ("new", "shapes"):
        request = {"appID": options.app_id, "environment": options.environment,
                   "shape": options.shape}
    else:
        request = json.load(sys.stdin)
    answer = run({**request, "command": options.command})
    print(json.dumps(answer))
    if answer.get("accepted") is False:
        sys.exit(1)


if __name__ == "__main__":
    main()
