"""The app on the phone: enrols the device and signs requests, as protocol.md describes."""

import base64
import concurrent.futures
import hashlib
import json
import os
import sys
import threading

import wire
from gate import APP_ID, HOST, TOP

sys.path.insert(0, os.path.join(TOP, "Tests", "Peers"))
import peer_attest  # noqa: E402  the independent device

SHAPES = list(peer_attest.SHAPES)


def b64(data):
    return base64.b64encode(data).decode()


def unpadded(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def sha256(data):
    return hashlib.sha256(data).digest()


def new_root():
    return peer_attest.Root()


def new_device(root, shape=SHAPES[0], app_id=APP_ID, environment="production"):
    return peer_attest.Device(root, app_id, environment, shape)


class Challenge:
    """A challenge: its id and its 32 bytes."""

    def __init__(self, identifier, data):
        self.id, self.bytes = identifier, data

    @property
    def by_value(self):
        return f"{self.id}.{unpadded(self.bytes)}"

    @classmethod
    def from_value(cls, text):
        identifier, mac = text.split(".")
        return cls(identifier, base64.urlsafe_b64decode(mac + "=" * (-len(mac) % 4)))

    @classmethod
    def from_json(cls, members):
        return cls(members["id"], base64.b64decode(members["bytes"], validate=True))


class App:
    """One installation of the app: a device's key, an account, an address of the gate."""

    def __init__(self, address, device, account=None, source=None, host=HOST,
                 prefix="/v1/app-attest", account_field="X-Account-Id"):
        self.address, self.device, self.source = address, device, source
        self.host, self.prefix = host, prefix
        self.account = [] if account is None else [(account_field, account)]

    def connect(self):
        return wire.Connection(self.address, source=self.source)

    def ask(self, method, target, fields=(), body=None, connection=None, **options):
        fields = [*self.account, *fields]
        if connection:
            return connection.ask(method, target, fields, body, self.host, **options)
        with self.connect() as fresh:
            return fresh.ask(method, target, fields, body, self.host, **options)

    def call(self, name, members, fields=(), connection=None):
        """One call of the enrolment endpoints; a str or bytes is sent as it is."""
        body = members if isinstance(members, bytes) else json.dumps(members).encode()
        fields = [("Content-Type", "application/json"), *fields]
        return self.ask("POST", f"{self.prefix}/{name}", fields, body, connection)

    def challenge(self, purpose="request", connection=None):
        answer = self.call("challenges", {"purpose": purpose}, connection=connection)
        assert answer.status == 200, answer
        return Challenge.from_json(answer.json)

    def challenges(self, count, purpose="request", connection=None):
        """Any number of challenges, sixteen at a time."""
        found = []
        while len(found) < count:
            ask = {"purpose": purpose, "count": min(16, count - len(found))}
            answer = self.call("challenges", ask, connection=connection)
            assert answer.status == 200, answer
            found += [Challenge.from_json(members) for members in answer.json["challenges"]]
        return found

    @property
    def key_id(self):
        return b64(self.device.key_id)

    def attestation(self, challenge):
        return self.device.attest(sha256(challenge.bytes))

    def enrol(self, challenge=None, connection=None, object_=None):
        """The answer of the call that enrols the key."""
        challenge = challenge or self.challenge("attestation", connection)
        members = {
            "keyID": self.key_id, "challengeID": challenge.id,
            "object": b64(object_ or self.attestation(challenge)),
        }
        return self.call("keys", members, connection=connection)

    def enrolled(self, connection=None):
        answer = self.enrol(connection=connection)
        assert answer.status == 201, answer
        return self

    def client_data(self, method, target, body, challenge, **changes):
        """The JSON of the `client_data` binding; a change to None leaves the member out."""
        members = {
            "challengeID": challenge.id, "challenge": b64(challenge.bytes), "method": method,
            "path": target, "bodySHA256": b64(sha256(body or b"")), **changes,
        }
        members = {name: value for name, value in members.items() if value is not None}
        return json.dumps(members).encode()

    def prove(self, method, target, body, challenge, binding="client_data", counter=None,
              by_value=False, **changes):
        """The proof fields of a request."""
        if binding == "client_data":
            data = self.client_data(method, target, body, challenge, **changes)
            travels = [("App-Attest-Client-Data", b64(data))]
        else:
            parts = ["attestgate-v1", method, target, challenge.id, b64(challenge.bytes),
                     b64(sha256(body or b""))]
            data = "\n".join(parts).encode()
            shown = challenge.by_value if by_value else challenge.id
            travels = [("App-Attest-Challenge", shown)]
        assertion = self.device.assert_(sha256(data), counter)
        return [("App-Attest-Key-Id", self.key_id),
                ("App-Attest-Assertion", b64(assertion)), *travels]

    def send(self, method, target, body=None, binding="client_data", challenge=None,
             purpose="request", fields=(), connection=None, chunked=False, counter=None,
             by_value=False, **changes):
        """One signed request, with a fresh challenge unless one is given."""
        challenge = challenge or self.challenge(purpose, connection)
        proof = self.prove(method, target, body, challenge, binding, counter, by_value, **changes)
        return self.ask(
            method, target, [*fields, *proof], body, connection, chunked=chunked)


def together(calls):
    """What each of `calls` gives, all begun at the same time."""
    barrier = threading.Barrier(len(calls))

    def run(call):
        barrier.wait(wire.DEADLINE)
        return call()

    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(run, call) for call in calls]]
