"""Client apps in the styles that tutorials teach, each as its app would send it.

A style makes a `Message`, which a test delivers as it is, again, or changed. What is signed, and in
which field or member it travels, is written out in each of them.
"""

import base64
import hashlib
import json

import wire
from gate import HOST


def b64(data):
    return base64.b64encode(data).decode()


def b64url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def sha256(data):
    return hashlib.sha256(data).digest()


class Message:
    """A request before it is sent."""

    def __init__(self, method, target, fields, body):
        self.method, self.target, self.fields, self.body = method, target, list(fields), body

    def changed(self, **parts):
        """The same with other parts; a field is changed by its name."""
        message = Message(self.method, self.target, self.fields, self.body)
        for name, value in parts.items():
            setattr(message, name, value)
        return message

    def without(self, *names):
        return self.changed(fields=[f for f in self.fields if f[0] not in names])

    def with_field(self, name, value):
        kept = [field for field in self.fields if field[0] != name]
        return self.changed(fields=[*kept, (name, value)])

    def field(self, name):
        return dict(self.fields).get(name)


class Style:
    """One installation of an app, behind a proxy that names its account where there is one."""

    prefix = "/v1/app-attest"

    def __init__(self, address, device, account=None):
        self.address, self.device = address, device
        self.account = [] if account is None else [("X-Account-Id", account)]
        self.next_challenge = None

    def deliver(self, message):
        with wire.Connection(self.address) as connection:
            answer = connection.ask(
                message.method, message.target, [*self.account, *message.fields], message.body,
                HOST)
        self.next_challenge = answer.get("App-Attest-Next-Challenge")
        return answer

    def post(self, call, members):
        return self.deliver(Message(
            "POST", f"{self.prefix}/{call}", [("Content-Type", "application/json")],
            json.dumps(members).encode()))

    def challenge_text(self, purpose=None):
        """`GET challenge`: one text, for clients that know no ids."""
        query = f"?purpose={purpose}" if purpose else ""
        answer = self.deliver(Message("GET", f"{self.prefix}/challenge{query}", [], None))
        assert answer.status == 200, answer
        return answer.body.decode("ascii")

    def challenge(self, purpose):
        """`POST challenges`: id and bytes."""
        answer = self.post("challenges", {"purpose": purpose})
        assert answer.status == 200, answer
        return answer.json["id"], base64.b64decode(answer.json["bytes"])

    @property
    def key_id(self):
        return b64(self.device.key_id)

    def sign(self, client_data):
        return b64(self.device.assert_(sha256(client_data)))

    def enrol(self):
        """By id, at `keys`."""
        identifier, data = self.challenge("attestation")
        return self.post("keys", {
            "keyID": self.key_id, "challengeID": identifier,
            "object": b64(self.device.attest(sha256(data)))})

    def enrolled(self):
        answer = self.enrol()
        assert answer.status in (200, 201), answer
        return self


class RawBody(Style):
    """The body is signed as it is; one field of the app's own naming, no key ID, no challenge.

    Enrols with the three members of the `verify` call, the challenge hashed as the text it is.
    """

    assertion_field = "X-App-Assertion"
    member = "keyId"
    is_challenge_coded = False

    def enrol(self):
        text = self.challenge_text()
        shown = b64(text.encode()) if self.is_challenge_coded else text
        return self.post("verify", {
            self.member: self.key_id, "challenge": shown,
            "attestation": b64(self.device.attest(sha256(text.encode())))})

    def request(self, method, target, body):
        return Message(method, target, [(self.assertion_field, self.sign(body))], body)


class RawBodyOfOlderApp(RawBody):
    """The same with the other spelling, and the challenge as base64."""

    member = "key_id"
    is_challenge_coded = True


class ChallengeInBody(Style):
    """The body is signed, and the challenge is one of its members."""

    purpose = "score"
    key_field, assertion_field = "App-Attest-Key-Id", "App-Attest-Assertion"
    is_challenge_coded = False

    def place(self, text, members):
        return {**members, "challenge": text}

    def request(self, method, target, members, text=None):
        text = text or self.challenge_text(self.purpose)
        shown = b64(text.encode()) if self.is_challenge_coded else text
        body = json.dumps(self.place(shown, members)).encode()
        return Message(method, target, [
            ("Content-Type", "application/json"), (self.key_field, self.key_id),
            (self.assertion_field, self.sign(body))], body)


class ChallengeDeepInBody(ChallengeInBody):
    """The challenge within an array, as base64 of its text."""

    purpose = "nested"
    is_challenge_coded = True

    def place(self, text, members):
        return {"a/b": [members, {"~": text}], "challenge": "another"}


class Envelope(Style):
    """One JSON object holds all, each member base64: proof, and the body it is for."""

    purpose = "order"
    more = {}

    def client_data(self, method, target, body, purpose=None):
        identifier, data = self.challenge(purpose or self.purpose)
        return json.dumps({
            "challengeID": identifier, "challenge": b64(data), "method": method, "path": target,
            "bodySHA256": b64(sha256(body)), **self.more}).encode()

    def members(self, method, target, body, purpose=None):
        data = self.client_data(method, target, body, purpose)
        return {"keyID": self.key_id, "clientData": b64(data), "assertion": self.sign(data),
                "body": b64(body)}

    def request(self, method, target, body, purpose=None):
        members = self.members(method, target, body, purpose)
        return Message(method, target, [("Content-Type", "application/vnd.sealed+json")],
                       json.dumps(members).encode())


class SeparateFields(Style):
    """Key ID, assertion and client data, each in a field of its own."""

    purpose = "fields"
    key_field, assertion_field = "App-Attest-Key-Id", "App-Attest-Assertion"
    data_field = "App-Attest-Client-Data"

    def request(self, method, target, body, challenge=None):
        identifier, data = challenge or self.challenge(self.purpose)
        client_data = json.dumps({
            "challengeID": identifier, "challenge": b64(data), "method": method, "path": target,
            "bodySHA256": b64(sha256(body or b""))}).encode()
        return Message(method, target, [
            (self.key_field, self.key_id), (self.assertion_field, self.sign(client_data)),
            (self.data_field, b64(client_data))], body)


class RequestLines(Style):
    """Only a challenge travels; both ends put the lines together. The challenge is one text."""

    purpose = "signed"
    key_field, assertion_field = "App-Attest-Key-Id", "App-Attest-Assertion"
    challenge_field = "App-Attest-Challenge"

    def request(self, method, target, body, text=None):
        text = text or self.challenge_text(self.purpose)
        identifier, mac = text.split(".")
        data = base64.urlsafe_b64decode(mac + "=")
        lines = ["attestgate-v1", method, target, identifier, b64(data), b64(sha256(body or b""))]
        return Message(method, target, [
            (self.key_field, self.key_id),
            (self.assertion_field, self.sign("\n".join(lines).encode())),
            (self.challenge_field, text)], body)


class FirstRequest:
    """Attestation, assertion and body in one first request, over one challenge: mixed into a style,
    whose `request` is given that challenge."""

    attestation_field = "App-Attest-Attestation"

    def attested(self, message, hashed):
        return message.with_field(self.attestation_field, b64(self.device.attest(sha256(hashed))))


class FirstFields(FirstRequest, SeparateFields):
    purpose = "first"

    def first(self, method, target, body, challenge=None):
        challenge = challenge or self.challenge("attestation")
        return self.attested(self.request(method, target, body, challenge), challenge[1])


class FirstLines(FirstRequest, RequestLines):
    purpose = "first-signed"

    def first(self, method, target, body):
        text = self.challenge_text()
        return self.attested(self.request(method, target, body, text), text.encode())


class FirstBody(FirstRequest, ChallengeInBody):
    purpose = "first-body"

    def first(self, method, target, members):
        text = self.challenge_text("attestation")
        return self.attested(self.request(method, target, members, text), text.encode())
