"""Apple's two services for the tests: DeviceCheck and App Attest's receipt exchange, over TLS.

Written from Apple's documents, with `cryptography`, and shares no line with the Swift code. It is
for tests only: its certificate is of an authority of the tests, so no gate talks to it that was not
told to by `devicecheck_url`, `attest_data_url` and `ca`.

    apple = Apple(identity.pem, identity.key_pem)    # a server's chain and key, PEM files
    apple.port                                       # both services, on 127.0.0.1
    apple.key_pem                                    # the DeviceCheck key, PKCS #8 PEM text
    apple.team_id, apple.key_id
    token = apple.token()                            # a fresh device token, base64 text, of a new
    token = apple.token(device)                      #   device, or of one that is known
    apple.device(token).bits                         # (bit0, bit1), None while never set
    apple.fail("500", times=2)                       # the next two calls; see FAULTS
    apple.fail("slow:3", path="/v1/query_two_bits")  # every call of this path, from now on
    apple.mend()                                     # no more faults
    apple.stop(), apple.start()                      # nothing listens; listens again
    apple.calls                                      # all calls, in order: Call
    apple.problems                                   # what a call had that Apple would not take

    apple.exchange = lambda receipt: new_receipt     # /v1/attestationData: DER in, DER out, or
                                                     # raise Answer(304), Answer(404) …

A call is verified as Apple's words have it: the token (ES256 as raw r and s, kid, iss, iat within
the hour), Bearer for DeviceCheck and bare for the exchange, JSON, whole milliseconds, a transaction
id that never came before, base64 without line breaks. What is merely unwise (bits written that were
not read, one bit left out) is in `problems` too; `authorizations` counts the tokens that came.
"""

import base64
import binascii
import json
import os
import secrets
import socket
import ssl
import struct
import threading
import time

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

QUERY, UPDATE = "/v1/query_two_bits", "/v1/update_two_bits"
VALIDATE, EXCHANGE = "/v1/validate_device_token", "/v1/attestationData"

# What a fault does: a status with Apple's words, or one of these.
#   slow:SECONDS   answers after that, as it would have
#   hang           answers nothing until `mend`
#   reset          resets the connection once the request is there
#   close          closes it instead of an answer
#   garbage        answers something that is no HTTP
#   endless        answers 200 and a body without end
#   expired        401: the authorization token has expired
#   environment    400: a device token, or receipt, of the other environment
#   token          400: a device token that is none, or has expired
FAULTS = {
    "304": (304, ""),
    "400": (400, "Missing or badly formatted payload"),
    "401": (401, "Unable to verify authorization token"),
    "403": (403, "Forbidden"),
    "404": (404, "No Data Found"),
    "405": (405, "Method Not Allowed"),
    "429": (429, "Too Many Requests"),
    "500": (500, "Server Error"),
    "503": (503, "Service Unavailable"),
    "expired": (401, "Authorization Token Expired"),
    "environment": (400, "Missing or incorrectly formatted device token payload"),
    "token": (400, "Missing or incorrectly formatted device token payload"),
}

REASONS = {200: "OK", 304: "Not Modified", 400: "Bad Request", 401: "Unauthorized",
           403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
           429: "Too Many Requests", 500: "Internal Server Error", 503: "Service Unavailable"}


class Answer(Exception):
    """An answer other than the usual one."""

    def __init__(self, status, text=None, retry_after=None):
        super().__init__(status)
        if text is None:
            text = FAULTS.get(str(status), (status, ""))[1]
        self.status, self.text, self.retry_after = status, text, retry_after


class Device:
    """A device as the team sees it: two bits, and the month they were set."""

    def __init__(self):
        self.bits, self.month = None, None


class Call:
    """One call as it came."""

    def __init__(self, method, path, fields, body):
        self.method, self.path, self.fields, self.body = method, path, fields, body
        self.at = time.time()
        self.status, self.trace, self.connection = None, secrets.token_hex(8), None

    def get(self, name):
        values = [value for key, value in self.fields if key.lower() == name.lower()]
        return values[0] if len(values) == 1 else None

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.method} {self.path} -> {self.status}"


class Apple:
    """Both services of one environment, on one port."""

    def __init__(self, certificate, key, environment="production", team_id="ABCDE12345",
                 key_id="KEY1234567", port=0):
        self.environment, self.team_id, self.key_id = environment, team_id, key_id
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.key_pem = self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption()).decode()
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(certificate, key)
        self._tls.set_alpn_protocols(["http/1.1"])
        self.exchange = lambda receipt: (_ for _ in ()).throw(Answer(404))
        self.changed = threading.Condition()
        self.calls, self.problems = [], []
        self.connections = 0
        self._tokens, self._transactions, self._faults = {}, set(), []
        self._authorizations, self._queried = set(), set()
        self._mended = threading.Event()
        self._open = set()
        self.port = port
        self.start()

    # What a test does.

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}"

    def start(self):
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", self.port))
        self._listener.listen(256)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def stop(self):
        """Nothing listens any more, and every connection is closed."""
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        self._mended.set()
        with self.changed:
            connections = list(self._open)
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    close = stop

    def token(self, device=None, environment=None):
        """A fresh token of `device`, or of a new one."""
        data = secrets.token_bytes(1500)
        with self.changed:
            self._tokens[data] = (device or Device(), environment or self.environment)
        return base64.b64encode(data).decode()

    def device(self, token):
        return self._tokens[base64.b64decode(token)][0]

    def expire(self, token):
        """Apple takes the token no more."""
        with self.changed:
            del self._tokens[base64.b64decode(token)]

    def fail(self, fault, times=None, path=None, retry_after=None):
        """The next `times` calls (None: all) of `path` (None: any) meet this fault."""
        self._mended.clear()
        with self.changed:
            self._faults.append([fault, times, path, retry_after])

    def mend(self):
        with self.changed:
            self._faults = []
        self._mended.set()

    def wait(self, count, path=None, within=10):
        """The calls of `path` once there are `count` of them, answered or not."""
        def found():
            return [call for call in self.calls if path in (None, call.path)]
        with self.changed:
            self.changed.wait_for(lambda: len(found()) >= count, within)
            return found()

    # The wire.

    def _accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self.changed:
                self.connections += 1
                self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        wrapped = connection
        try:
            wrapped = self._tls.wrap_socket(connection, server_side=True)
            with self.changed:
                self._open.discard(connection)
                self._open.add(wrapped)
            data = b""
            while True:
                call, data = self._read(wrapped, data)
                if call is None:
                    break
                call.connection = wrapped
                if not self._handle(wrapped, call):
                    break
        except (OSError, ValueError):
            pass
        finally:
            with self.changed:
                self._open.discard(connection)
                self._open.discard(wrapped)
            wrapped.close()

    def _read(self, connection, data):
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more:
                return None, b""
            data += more
        head, data = data.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        method, path, version = lines[0].split(" ")
        fields = [(line.split(":", 1)[0], line.split(":", 1)[1].strip()) for line in lines[1:]]
        names = [name.lower() for name, _ in fields]
        if version != "HTTP/1.1" or len(set(names)) != len(names) or "host" not in names:
            self._note(f"a head that is no head: {head!r}")
        if "transfer-encoding" in names:
            self._note("a body without length")
        length = int(dict(zip(names, (value for _, value in fields))).get("content-length", "0"))
        while len(data) < length:
            more = connection.recv(65536)
            if not more:
                return None, b""
            data += more
        return Call(method, path, fields, data[:length]), data[length:]

    def _handle(self, connection, call):
        """Answers a call; whether the connection goes on."""
        with self.changed:
            self.calls.append(call)
            fault, retry_after = self._fault(call.path)
            self.changed.notify_all()
        if fault == "hang":
            self._mended.wait(60)
            return False
        if fault == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(connection.detach())
            return False
        if fault == "close":
            return False
        if fault == "garbage":
            connection.sendall(b"220 this is no HTTP\r\n\r\n")
            return False
        if fault == "endless":
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while not self._mended.is_set():
                connection.sendall(b"x" * 65536)
            return False
        if fault and fault.startswith("slow:"):
            self._mended.wait(float(fault.split(":")[1]))
            fault = None
        try:
            if fault:
                self._verify_authorization(call)
                raise Answer(*FAULTS[fault], retry_after=retry_after)
            text, kind = self._answer(call)
            answer = Answer(200, text)
        except Answer as other:
            answer, kind = other, "text/plain"
        call.status = answer.status
        body = answer.text.encode()
        lines = [f"HTTP/1.1 {answer.status} {REASONS[answer.status]}",
                 f"Content-Type: {kind}", f"X-B3-TraceId: {call.trace}"]
        if answer.retry_after is not None:
            lines.append(f"Retry-After: {answer.retry_after}")
        if answer.status != 304:
            lines.append(f"Content-Length: {len(body)}")
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        with self.changed:
            self.changed.notify_all()
        return True

    def _fault(self, path):
        for entry in self._faults:
            if entry[2] in (None, path) and entry[1] != 0:
                if entry[1] is not None:
                    entry[1] -= 1
                return entry[0], entry[3]
        return None, None

    def _note(self, text):
        with self.changed:
            self.problems.append(text)

    def _refuse(self, status, text, why):
        """What Apple would not take: answered so, and noted."""
        self._note(f"{text}: {why}")
        raise Answer(status, text)

    # What Apple checks.

    def _answer(self, call):
        known = {QUERY: self._query, UPDATE: self._update, VALIDATE: self._validate,
                 EXCHANGE: self._exchange}
        if call.path not in known:
            self._refuse(404, "Not Found", call.path)
        if call.method != "POST":
            self._refuse(405, "Method Not Allowed", call.method)
        self._verify_authorization(call)
        return known[call.path](call)

    def _verify_authorization(self, call):
        text = call.get("Authorization") or ""
        if call.path == EXCHANGE:
            # Apple's page shows the bare token; both seem to be taken.
            if text.startswith("Bearer "):
                self._note("Bearer before the token of the exchange")
                text = text.removeprefix("Bearer ")
        elif text.startswith("Bearer "):
            text = text.removeprefix("Bearer ")
        else:
            self._refuse(400, "Missing or badly formatted authorization token", "no Bearer")
        parts = text.split(".")
        if len(parts) != 3:
            self._refuse(400, "Missing or badly formatted authorization token", "no three parts")
        try:
            header, claims = (json.loads(_base64url(part)) for part in parts[:2])
            signature = _base64url(parts[2])
        except ValueError as error:
            self._refuse(400, "Missing or badly formatted authorization token", str(error))
        if len(signature) != 64:
            self._refuse(401, "Unable to verify authorization token",
                         f"{len(signature)} bytes of signature, not r and s")
        der = utils.encode_dss_signature(
            int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big"))
        try:
            self._key.public_key().verify(
                der, f"{parts[0]}.{parts[1]}".encode(), ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            self._refuse(401, "Unable to verify authorization token", "the signature")
        if header.get("alg") != "ES256" or header.get("kid") != self.key_id:
            self._refuse(401, "Invalid Authorization Token", str(header))
        if claims.get("iss") != self.team_id or type(claims.get("iat")) is not int:
            self._refuse(401, "Invalid Authorization Token", str(claims))
        age = time.time() - claims["iat"]
        if age > 3600:
            self._refuse(401, "Authorization Token Expired", f"{age:.0f} s old")
        if age < -60:
            self._refuse(401, "Invalid Authorization Token", f"{-age:.0f} s in the future")
        with self.changed:
            self._authorizations.add(text)

    @property
    def authorizations(self):
        """How many tokens of the operator's came."""
        return len(self._authorizations)

    def _members(self, call):
        if (call.get("Content-Type") or "").split(";")[0] != "application/json":
            self._refuse(400, "Missing or badly formatted payload", call.get("Content-Type"))
        try:
            members = json.loads(call.body)
        except ValueError as error:
            self._refuse(400, "Missing or badly formatted payload", str(error))
        if type(members.get("timestamp")) is not int \
                or abs(members["timestamp"] - time.time() * 1000) > 300_000:
            self._refuse(400, "Missing or incorrectly formatted time stamp",
                         members.get("timestamp"))
        transaction = members.get("transaction_id")
        if type(transaction) is not str or not 1 <= len(transaction) <= 256:
            self._refuse(400, "Missing or badly formatted payload", transaction)
        with self.changed:
            is_new = transaction not in self._transactions
            self._transactions.add(transaction)
        if not is_new:
            self._note(f"transaction_id {transaction} came before")
        token = members.get("device_token")
        try:
            data = base64.b64decode(token, validate=True)
        except (TypeError, ValueError, binascii.Error):
            self._refuse(400, FAULTS["token"][1], "no base64")
        with self.changed:
            device, environment = self._tokens.get(data, (None, None))
        if device is None or environment != self.environment:
            raise Answer(400, FAULTS["token"][1])
        return members, device, data

    def _query(self, call):
        _, device, token = self._members(call)
        with self.changed:
            self._queried.add(token)
            if device.bits is None:
                return "Failed to find bit state", "text/plain"
            return json.dumps({
                "bit0": device.bits[0], "bit1": device.bits[1],
                "last_update_time": device.month,
            }), "application/json"

    def _update(self, call):
        members, device, token = self._members(call)
        bits = members.get("bit0"), members.get("bit1")
        if any(bit is not None and type(bit) is not bool for bit in bits):
            self._refuse(400, "Missing or incorrectly formatted bits", bits)
        if None in bits:
            self._note("one bit left out: what that does is not documented")
        with self.changed:
            if token not in self._queried:
                self.problems.append("bits written that were not read")
            device.bits = tuple(bool(bit) for bit in bits)
            device.month = time.strftime("%Y-%m", time.gmtime())
        return "", "text/plain"

    def _validate(self, call):
        self._members(call)
        return "", "text/plain"

    def _exchange(self, call):
        try:
            receipt = base64.b64decode(call.body, validate=True)
        except (ValueError, binascii.Error):
            self._refuse(400, "Bad Payload", "no base64")
        if not receipt:
            self._refuse(400, "Bad Payload", "empty")
        return base64.b64encode(self.exchange(receipt)).decode(), "application/octet-stream"


def _base64url(text):
    if "=" in text:
        raise ValueError("padding in a token")
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


class Client:
    """Calls the services as they should be called: the tests of this file, and of faults."""

    def __init__(self, apple, authority):
        self.apple = apple
        self.tls = ssl.create_default_context(cafile=authority)

    def authorization(self, at=None, key_id=None, team_id=None, der=False):
        header = {"alg": "ES256", "kid": key_id or self.apple.key_id}
        issued = int(time.time() if at is None else at)
        claims = {"iss": team_id or self.apple.team_id, "iat": issued}
        text = ".".join(_unpadded(json.dumps(part).encode()) for part in (header, claims))
        signature = self.apple._key.sign(text.encode(), ec.ECDSA(hashes.SHA256()))
        if not der:
            numbers = utils.decode_dss_signature(signature)
            signature = b"".join(number.to_bytes(32, "big") for number in numbers)
        return f"{text}.{_unpadded(signature)}"

    def members(self, token, **others):
        return {"device_token": token, "transaction_id": secrets.token_hex(16),
                "timestamp": int(time.time() * 1000), **others}

    def post(self, path, body, authorization=None, kind="application/json"):
        """The status and the body of the answer."""
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if authorization is None:
            bearer = "" if path == EXCHANGE else "Bearer "
            authorization = bearer + self.authorization()
        with socket.create_connection(("127.0.0.1", self.apple.port), 10) as connection, \
                self.tls.wrap_socket(connection, server_hostname="127.0.0.1") as wrapped:
            head = (f"POST {path} HTTP/1.1\r\nHost: apple.test\r\nContent-Type: {kind}\r\n"
                    f"Authorization: {authorization}\r\nContent-Length: {len(body)}\r\n\r\n")
            wrapped.sendall(head.encode() + body)
            data = b""
            while b"\r\n\r\n" not in data:
                data += self._more(wrapped)
            head, data = data.split(b"\r\n\r\n", 1)
            status = int(head.split(b" ")[1])
            length = [line.split(b":")[1] for line in head.lower().split(b"\r\n")
                      if line.startswith(b"content-length:")]
            while length and len(data) < int(length[0]):
                data += self._more(wrapped)
            return status, data.decode()

    @staticmethod
    def _more(connection):
        data = connection.recv(65536)
        if not data:
            raise ConnectionError("closed before the answer")
        return data


def _unpadded(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
