"""Who issues tokens for the tests: keys, tokens of every kind, and a server of the key set."""

import base64
import hashlib
import hmac
import http.server
import json
import ssl
import threading
import time

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

SHA256 = hashes.SHA256()
PSS = padding.PSS(padding.MGF1(SHA256), 32)


def unpadded(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def number(value, size=None):
    return unpadded(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))


class Key:
    """A signing key: `RS256`, `PS256`, `ES256` or `EdDSA`."""

    def __init__(self, algorithm, identifier):
        self.algorithm, self.id = algorithm, identifier
        if algorithm in ("RS256", "PS256"):
            self.private = rsa.generate_private_key(65537, 2048)
        elif algorithm == "ES256":
            self.private = ec.generate_private_key(ec.SECP256R1())
        else:
            self.private = ed25519.Ed25519PrivateKey.generate()
        self.public = self.private.public_key()

    @property
    def pem(self):
        return self.public.public_bytes(
            serialization.Encoding.PEM,
            serialization.PublicFormat.SubjectPublicKeyInfo).decode()

    @property
    def jwk(self):
        if isinstance(self.public, rsa.RSAPublicKey):
            numbers = self.public.public_numbers()
            members = {"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e)}
        elif isinstance(self.public, ec.EllipticCurvePublicKey):
            numbers = self.public.public_numbers()
            members = {"kty": "EC", "crv": "P-256", "x": number(numbers.x, 32),
                       "y": number(numbers.y, 32)}
        else:
            members = {"kty": "OKP", "crv": "Ed25519",
                       "x": unpadded(self.public.public_bytes_raw())}
        return {**members, "kid": self.id, "use": "sig", "alg": self.algorithm}

    def sign(self, data):
        if self.algorithm == "RS256":
            return self.private.sign(data, padding.PKCS1v15(), SHA256)
        if self.algorithm == "PS256":
            return self.private.sign(data, PSS, SHA256)
        if self.algorithm == "ES256":
            r, s = utils.decode_dss_signature(self.private.sign(data, ec.ECDSA(SHA256)))
            return r.to_bytes(32, "big") + s.to_bytes(32, "big")
        return self.private.sign(data)

    def token(self, account="alice", header=None, sign=None, **claims):
        """A token; a claim or member that is None is left out."""
        header = {"alg": self.algorithm, "kid": self.id, "typ": "JWT", **(header or {})}
        claims = {"iss": "https://id.example", "aud": "shop", "sub": account,
                  "exp": int(time.time()) + 600, **claims}
        parts = [
            unpadded(json.dumps({k: v for k, v in part.items() if v is not None}).encode())
            for part in (header, claims)
        ]
        text = ".".join(parts)
        return f"{text}.{unpadded((sign or self.sign)(text.encode()))}"

    def with_secret(self, secret):
        """HS256 with a public text as its secret: what confused algorithms would take."""
        return self.token(
            header={"alg": "HS256"},
            sign=lambda data: hmac.new(secret.encode(), data, hashlib.sha256).digest())


def key_set(*keys):
    return json.dumps({"keys": [key.jwk for key in keys]})


class Server:
    """Serves a key set over TLS; `fault` is None, a status, `slow`, `garbage`, `empty`, `huge`."""

    def __init__(self, identity, *keys):
        self.identity, self.keys, self.fault = identity, keys, None
        self.asked = 0
        self.changed = threading.Condition()
        self.released = threading.Event()
        self.port = 0
        self.start()

    def start(self):
        owner = self

        class Answers(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                owner.answer(self)

            def log_message(self, *_):
                pass

        self.released.clear()
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Answers)
        self.http.daemon_threads = True
        self.port = self.http.server_address[1]
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self.identity.pem, self.identity.key_pem)
        self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def stop(self):
        self.released.set()
        self.http.shutdown()
        self.http.server_close()

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}/keys?tenant=a"

    def answer(self, handler):
        with self.changed:
            self.asked += 1
            self.changed.notify_all()
        fault, status = self.fault, 200
        body = key_set(*self.keys).encode()
        if fault == "slow":
            self.released.wait(60)
        elif fault == "garbage":
            body = b"<html>maintenance</html>"
        elif fault == "empty":
            body = b'{"keys": []}'
        elif fault == "huge":
            body = b" " * 300_000 + body
        elif fault:
            status = fault
        try:
            handler.send_response(status)
            handler.send_header("Content-Type", "application/jwk-set+json")
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
        except OSError:
            handler.close_connection = True

    def wait(self, count, within=10):
        """Whether it has been asked so often in all."""
        with self.changed:
            return self.changed.wait_for(lambda: self.asked >= count, within)
