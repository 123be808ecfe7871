"""The first request of an app that brings its attestation along, and enrolment by value."""

import base64

import app
import styles
from style_case import BODY, StyleCase


class FirstRequest(StyleCase):
    """Attestation, assertion and body in one first request."""

    kinds = {styles.FirstFields: "/first", styles.FirstLines: "/first-signed",
             styles.FirstBody: "/first-body"}

    def content(self, kind):
        return {"points": 4200} if kind is styles.FirstBody else BODY

    def altered(self, message):
        changed = message.body.replace(b"4200", b"9200")
        assert changed != message.body
        return message.changed(body=changed)

    def registered(self, client):
        return client.post("keys/status", {"keyID": client.key_id}).json["registered"]

    def test_one_request_enrols_and_passes(self):
        for kind, path in self.kinds.items():
            for shape in app.SHAPES:
                client = self.style(kind, device=self.device(shape))
                self.assertFalse(self.registered(client))
                self.passes(client, client.first("POST", f"{path}/a", self.content(kind)))
                self.assertTrue(self.registered(client))
            # The next one is an ordinary request.
            self.passes(client, client.request("POST", f"{path}/a", self.content(kind)))

    def test_its_replay_is_refused(self):
        for kind, path in self.kinds.items():
            client = self.style(kind)
            message = client.first("POST", f"{path}/a", self.content(kind))
            self.passes(client, message)
            self.refused(client, message, "challenge_required", "challenge_spent")
            self.refused(client, message.without("App-Attest-Attestation"), "challenge_required")

    def test_its_counter_is_stored_with_the_key(self):
        for kind, path in self.kinds.items():
            client = self.style(kind)
            client.device.counter = 10
            self.passes(client, client.first("POST", f"{path}/a", self.content(kind)))
            client.device.counter = 4
            message = client.request("POST", f"{path}/a", self.content(kind))
            self.refused(client, message, "challenge_required", "counter_not_greater")
            client.device.counter = 11
            message = client.request("POST", f"{path}/a", self.content(kind))
            self.passes(client, message)

    def test_an_altered_body_enrols_nothing_and_spends_nothing(self):
        for kind, path in self.kinds.items():
            client = self.style(kind)
            message = client.first("POST", f"{path}/a", self.content(kind))
            self.refused(client, self.altered(message), "rejected")
            self.assertFalse(self.registered(client))
            self.passes(client, message)

    def test_an_altered_path_is_refused_where_it_is_signed(self):
        for kind, path in self.kinds.items():
            client = self.style(kind)
            message = client.first("POST", f"{path}/a", self.content(kind))
            if kind is styles.FirstBody:
                self.passes(client, message.changed(target=f"{path}/b"))
            else:
                self.refused(client, message.changed(target=f"{path}/b"), "rejected")
                self.assertFalse(self.registered(client))
                self.passes(client, message)

    def test_attestation_and_assertion_are_of_one_key_and_one_challenge(self):
        client, other = self.style(styles.FirstFields), self.style(styles.FirstFields)
        message = client.first("POST", "/first/a", BODY)
        challenge = client.challenge("attestation")
        counter = client.device.counter
        over = other.attested(message, challenge[1])
        self.refused(client, over, "rejected", "nonce_mismatch")
        elsewhere = client.attested(message, challenge[1])
        self.refused(client, elsewhere, "rejected", "nonce_mismatch")
        # Another key's attestation under its own ID, with this one's assertion.
        challenge = client.challenge("attestation")
        mixed = client.request("POST", "/first/a", BODY, challenge)
        mixed = other.attested(mixed, challenge[1]).with_field("App-Attest-Key-Id", other.key_id)
        self.refused(client, mixed, "rejected", "signature_invalid")
        self.assertFalse(self.registered(client) or self.registered(other))
        client.device.counter = counter
        self.passes(client, message)

    def test_only_a_challenge_for_attestations_enrols(self):
        client = self.style(styles.FirstFields)
        message = client.first("POST", "/first/a", BODY, client.challenge("first"))
        answer = self.refused(client, message, "challenge_required", "challenge_unknown")
        identifier, mac = answer.get("App-Attest-Next-Challenge").split(".")
        challenge = identifier, base64.urlsafe_b64decode(mac + "=")
        self.passes(client, client.first("POST", "/first/a", BODY, challenge))

    def test_a_key_already_known_makes_it_an_ordinary_request(self):
        client = self.style(styles.FirstFields).enrolled()
        self.passes(client, client.first("POST", "/first/a", BODY))
        # Its attestation is not looked at; the purpose of the route is good as ever.
        message = client.first("POST", "/first/a", BODY, client.challenge("first"))
        self.passes(client, client.attested(message, b"another"))
        self.passes(client, client.request("POST", "/first/a", BODY))
        # Without attestation, a challenge for one is not.
        message = client.request("POST", "/first/a", BODY, client.challenge("attestation"))
        self.refused(client, message, "challenge_required", "challenge_unknown")

    def test_keys_of_others_and_revoked_keys_are_rejected(self):
        owner = self.style(styles.FirstFields).enrolled()
        thief = self.style(styles.FirstFields, device=owner.device)
        self.refused(thief, thief.first("POST", "/first/a", BODY), "rejected", "key_foreign")
        self.passes(owner, owner.request("POST", "/first/a", BODY))
        self.assertEqual(owner.post("keys/revoke", {"keyID": owner.key_id}).status, 204)
        self.refused(owner, owner.first("POST", "/first/a", BODY), "rejected", "key_revoked")
        self.refused(thief, thief.first("POST", "/first/a", BODY), "rejected", "key_foreign")

    def test_a_bad_attestation(self):
        client = self.style(styles.FirstFields)
        message = client.first("POST", "/first/a", BODY)
        for text in ("", "!", "AAAA", app.b64(b"\xa0"), app.b64(b"\x00" * 17_000)):
            self.refused(client, message.with_field("App-Attest-Attestation", text), "bad_request",
                         "proof_malformed")
        alone = styles.Message(
            "POST", "/first/a",
            [("App-Attest-Attestation", message.field("App-Attest-Attestation"))], BODY)
        self.refused(client, alone, "bad_request", "proof_incomplete")
        stranger = app.new_root()
        foreign = self.style(styles.FirstFields, device=app.new_device(stranger))
        self.refused(foreign, foreign.first("POST", "/first/a", BODY), "rejected",
                     "certificate_chain")
        develop = self.style(styles.FirstFields, device=self.device(environment="development"))
        self.refused(develop, develop.first("POST", "/first/a", BODY), "rejected",
                     "aaguid_mismatch")

    def test_a_route_without_inline_enrolment_ignores_the_attestation(self):
        client = self.style(styles.FirstFields)
        message = client.first("POST", "/fields/a", BODY, client.challenge("fields"))
        self.refused(client, message, "enrollment_required", "key_unknown")
        client.enrolled()
        self.passes(client, client.attested(
            client.request("POST", "/fields/a", BODY, client.challenge("fields")), b"unused"))

    def test_one_hundred_continue_comes_after_the_attestation(self):
        client = self.style(styles.FirstFields)
        message = client.first("POST", "/first/a", BODY)
        fields = [*client.account, *message.fields, ("Expect", "100-continue"),
                  ("Content-Length", str(len(BODY)))]
        with app.wire.Connection(self.gate.address) as connection:
            connection.send(app.wire.message("POST", "/first/a", fields))
            self.assertEqual(connection.head()[1], 100)
            connection.send(BODY)
            self.assertEqual(connection.response("POST").status, 200)
        bad = self.style(styles.FirstFields, device=app.new_device(app.new_root()))
        message = bad.first("POST", "/first/a", BODY)
        fields = [*bad.account, *message.fields, ("Expect", "100-continue"),
                  ("Content-Length", str(len(BODY)))]
        with app.wire.Connection(self.gate.address) as connection:
            connection.send(app.wire.message("POST", "/first/a", fields))
            answer = connection.response("POST")
            self.check_problem(answer, "rejected")
            self.assertEqual(answer.interim, [])

    def test_a_monitored_route_enrols_too_and_forwards_what_fails(self):
        client = self.style(styles.FirstFields)
        message = client.first("POST", "/watched/first/a", BODY)
        altered = message.changed(body=BODY + b" ")
        answer = client.deliver(altered)
        request = self.check_upstream(answer)
        self.assertEqual(request.get("App-Attest-Verdict"), "monitored")
        self.check_reason(answer, "body_mismatch")
        self.assertFalse(self.registered(client))
        request = self.passes(client, message)
        self.assertTrue(self.registered(client))

    def test_requests_at_the_same_time_enrol_once_and_each_counter_passes_once(self):
        client = self.style(styles.FirstFields)
        messages = [client.first("POST", "/first/a", BODY) for _ in range(6)]
        answers = app.together([lambda m=m: client.deliver(m) for m in messages])
        passed = [answer for answer in answers if answer.status == 200]
        self.assertTrue(passed)
        for answer in answers:
            if answer.status != 200:
                self.check_problem(answer, "challenge_required")
        counters = [r.get("App-Attest-Counter") for r in self.service.wait(len(passed))]
        self.assertEqual(len(set(counters)), len(passed))
        for message in messages:
            self.refused(client, message, "challenge_required")


class HashedText(StyleCase):
    """`challenge_hash text`: the app hashes the base64 of the challenge it was given by id."""

    app_lines = ["challenge_hash text"]

    def test_enrolment_by_id_hashes_the_text(self):
        client = self.style(styles.Style)
        identifier, data = client.challenge("attestation")
        members = {"keyID": client.key_id, "challengeID": identifier}
        by_bytes = {**members, "object": app.b64(client.device.attest(app.sha256(data)))}
        answer = client.post("keys", by_bytes)
        self.check_problem(answer, "rejected")
        self.check_reason(answer, "nonce_mismatch")
        text = app.b64(data).encode()
        by_text = {**members, "object": app.b64(client.device.attest(app.sha256(text)))}
        self.assertEqual(client.post("keys", by_text).status, 201)

    def test_by_value_the_text_is_hashed_as_ever(self):
        client = self.style(styles.RawBody)
        self.assertEqual(client.enrol().status, 200)

    def test_a_first_request_hashes_the_text(self):
        client = self.style(styles.FirstFields)
        identifier, data = client.challenge("attestation")
        message = client.request("POST", "/first/a", BODY, (identifier, data))
        self.refused(client, client.attested(message, data), "rejected", "nonce_mismatch")
        self.passes(client, client.attested(message, app.b64(data).encode()))


class Verify(StyleCase):
    """`GET challenge` and `POST verify`, by value."""

    def object(self, client, text):
        return app.b64(client.device.attest(app.sha256(text.encode())))

    def test_both_spellings_and_both_forms(self):
        for member in ("key_id", "keyId"):
            for is_coded in (False, True):
                client = self.style(styles.Style)
                text = client.challenge_text("attestation")
                answer = client.post("verify", {
                    member: client.key_id, "attestation": self.object(client, text),
                    "challenge": app.b64(text.encode()) if is_coded else text})
                self.assertEqual((answer.status, answer.json), (200, {"registered": True}), answer)

    def test_what_is_missing_doubled_or_of_another_purpose(self):
        client = self.style(styles.Style)
        text = client.challenge_text()
        members = {"keyId": client.key_id, "challenge": text,
                   "attestation": self.object(client, text)}
        for name in members:
            short = {key: value for key, value in members.items() if key != name}
            self.check_problem(client.post("verify", short), "bad_request")
        self.check_problem(
            client.post("verify", {**members, "key_id": client.key_id}), "bad_request")
        self.check_problem(client.post("verify", {**members, "challenge": "?"}), "bad_request")
        other = client.challenge_text("score")
        answer = client.post("verify", {
            **members, "challenge": other, "attestation": self.object(client, other)})
        self.check_problem(answer, "challenge_required")
        by_id = text.split(".")[0]
        self.check_problem(
            client.post("verify", {**members, "challenge": by_id}), "challenge_required")
        self.assertEqual(client.post("verify", members).status, 200)
        self.check_problem(client.post("verify", members), "challenge_required")
