#!/usr/bin/env python3
"""PyPI's `pyattest` as a judge and as a source of bad objects, for the tests.

One JSON object a line in, one a line out, bytes as base64:

    {"command": "verify-attestation", "object", "challenge", "keyID", "appID", "environment",
     "root"}
    {"command": "verify-assertion", "object", "clientDataHash", "publicKey", "appID", "root"}
        answer {"accepted": bool, "reason": the exception's name}
    {"command": "factory", "appID", "challenge"}
        answer {"object", "keyID", "root"}: made by pyattest's own test factory, whose leaf is RSA,
        whose nonce extension is no DER, and whose root has expired

pyattest reads the clock itself and hashes the challenge itself.
"""

import asyncio
import base64
import hashlib
import importlib.resources
import json
import sys
import warnings

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

warnings.simplefilter("ignore")

from pyattest.assertion import Assertion  # noqa: E402
from pyattest.attestation import Attestation  # noqa: E402
from pyattest.configs.apple import AppleConfig  # noqa: E402
from pyattest.testutils.factories.attestation import apple as factory  # noqa: E402


def b64(text):
    return base64.b64decode(text, validate=True)


def config(request, key_id):
    return AppleConfig(key_id=key_id, app_id=request["appID"],
                       production=request.get("environment") == "production",
                       root_ca=request["root"].encode())


def verify_attestation(request):
    attestation = Attestation(b64(request["object"]), b64(request["challenge"]),
                              config(request, b64(request["keyID"])))
    asyncio.run(attestation.verify())


def verify_assertion(request):
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), b64(request["publicKey"]))
    Assertion(b64(request["object"]), b64(request["clientDataHash"]), key,
              config(request, b"")).verify()


def make(request):
    made, public_key = factory.get(request["appID"], b64(request["challenge"]))
    root = importlib.resources.files("pyattest") / "testutils/fixtures/root_cert.pem"
    certificate = x509.load_pem_x509_certificate(root.read_bytes())
    return {
        "object": base64.b64encode(made).decode(),
        "keyID": base64.b64encode(hashlib.sha256(public_key).digest()).decode(),
        "root": base64.b64encode(certificate.public_bytes(serialization.Encoding.DER)).decode(),
    }


def run(request):
    """The answer to one request, both dictionaries."""
    if request["command"] == "factory":
        return make(request)
    judge = {"verify-attestation": verify_attestation, "verify-assertion": verify_assertion}
    try:
        judge[request["command"]](request)
    except Exception as error:
        return {"accepted": False, "reason": type(error).__name__}
    return {"accepted": True}


def main():
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
