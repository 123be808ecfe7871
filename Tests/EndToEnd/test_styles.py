"""Each client style of the field, as its app would send it: what passes, to the byte; and its
replay, altered body and altered path (where that is bound) refused."""

import base64
import json

import app
import case
import styles

BODY = b'{"level": 3,  "points":4200, "note":"\xc3\xa9"}'


class StyleCase(case.SharedGate):
    """A gate with accounts, and fields and routes for every style."""

    proof = []
    app_lines = []

    @classmethod
    def configure(cls, settings):
        settings.listener.append("trusted_proxies 127.0.0.0/8")
        settings.account = "header X-Account-Id"
        settings.host += cls.proof
        settings.app += cls.app_lines
        settings.routes = {
            "POST /raw/*": ["bind body challenge=none", "purpose raw"],
            "POST /scores/*": ["bind body challenge=json:/challenge", "purpose score"],
            "POST /nested/*": ["bind body challenge=json:/a~1b/1/~0", "purpose nested"],
            "* /orders/*": ["bind envelope", "purpose order"],
            "* /fields/*": ["purpose fields"],
            "* /signed/*": ["bind request", "purpose signed"],
            "POST /first/*": ["inline_enroll on", "purpose first"],
            "POST /first-signed/*": ["bind request", "inline_enroll on", "purpose first-signed"],
            "POST /first-body/*": [
                "bind body challenge=json:/challenge", "inline_enroll on", "purpose first-body"],
            "POST /watched/first/*": ["mode monitor", "inline_enroll on", "purpose first"],
            "POST /watched/orders/*": ["mode monitor", "bind envelope", "purpose order"],
            "POST /watched/scores/*": [
                "mode monitor", "bind body challenge=json:/challenge", "purpose watched"],
        }

    accounts = 0

    def style(self, kind, account=None, device=None):
        StyleCase.accounts += 1
        return kind(self.gate.address, device or self.device(),
                    account or f"account-{StyleCase.accounts}")

    def passes(self, client, message, body=None):
        """It passes, and the service gets these bytes and no field of the proof."""
        self.service.reset()
        answer = client.deliver(message)
        request = self.check_upstream(answer)
        self.assertEqual(request.target, message.target)
        self.assertEqual(request.body, message.body or b"" if body is None else body)
        self.assertEqual(request.get("App-Attest-Verdict"), "verified")
        self.assertEqual(request.get("App-Attest-Verified-Key"), client.key_id)
        self.assertEqual(request.get("App-Attest-Counter"), str(client.device.counter))
        for name in PROOF_FIELDS:
            self.assertEqual(request.all(name), [], name)
        self.service.reset()
        return request

    def refused(self, client, message, code, reason=None):
        self.service.reset()
        answer = self.check_problem(client.deliver(message), code)
        self.check_nothing_upstream()
        if reason:
            self.check_reason(answer, reason)
            self.assertNotIn(reason, answer.body.decode().replace(code, ""))
        return answer


PROOF_FIELDS = [
    "X-App-Assertion", "X-App-Key", "X-App-Data", "X-App-Challenge", "X-App-Attestation",
    "App-Attest-Key-Id", "App-Attest-Assertion", "App-Attest-Client-Data", "App-Attest-Challenge",
    "App-Attest-Attestation",
]


class RawBody(StyleCase):
    """The raw body is signed, the assertion in X-App-Assertion, no key ID."""

    proof = ["proof {", "key_id account", "assertion header X-App-Assertion", "}"]

    def test_the_body_passes_as_it_was_signed(self):
        for kind in (styles.RawBody, styles.RawBodyOfOlderApp):
            client = self.style(kind)
            answer = client.enrol()
            self.assertEqual((answer.status, answer.json), (200, {"registered": True}), answer)
            for body in (BODY, b"", b"\x00\xff" * 1000, b"x" * 200_000):
                self.passes(client, client.request("POST", "/raw/a", body))

    def test_its_replay_and_an_altered_body_are_refused(self):
        client = self.style(styles.RawBody).enrolled()
        message = client.request("POST", "/raw/a", BODY)
        self.refused(client, message.changed(body=BODY + b" "), "rejected", "signature_invalid")
        self.passes(client, message)
        for _ in range(2):
            self.refused(client, message, "challenge_required", "counter_not_greater")
        self.refused(client, message.changed(target="/raw/b"), "challenge_required")

    def test_the_path_is_not_signed(self):
        client = self.style(styles.RawBody).enrolled()
        message = client.request("POST", "/raw/a", BODY)
        self.passes(client, message.changed(target="/raw/b?c=d"))

    def test_no_proof_and_a_bad_one(self):
        client = self.style(styles.RawBody).enrolled()
        message = client.request("POST", "/raw/a", BODY)
        self.refused(
            client, message.without("X-App-Assertion"), "proof_required", "proof_absent")
        for text in ("", "!!", "AAAA", app.b64(b"\xa0")):
            self.refused(client, message.with_field("X-App-Assertion", text), "bad_request")
        self.refused(
            client, message.with_field("App-Attest-Key-Id", "AAAA"), "bad_request",
            "proof_malformed")
        renamed = message.without("X-App-Assertion").with_field(
            "App-Attest-Assertion", message.field("X-App-Assertion"))
        self.refused(client, renamed, "proof_required")

    def test_the_key_that_signed_is_found_among_several(self):
        account = "account-of-many"
        clients = [self.style(styles.RawBody, account).enrolled() for _ in range(4)]
        for client in clients + clients[::-1]:
            self.passes(client, client.request("POST", "/raw/a", BODY))
        foreign = self.style(styles.RawBody, "account-of-another").enrolled()
        message = foreign.request("POST", "/raw/a", BODY)
        self.refused(clients[0], message, "challenge_required", "counter_not_greater")
        foreign.device.skip(100)
        self.refused(clients[0], foreign.request("POST", "/raw/a", BODY), "rejected",
                     "signature_invalid")

    def test_a_key_that_was_passed_over_makes_it_challenge_required(self):
        account = "account-of-two"
        ahead, behind = [self.style(styles.RawBody, account).enrolled() for _ in range(2)]
        ahead.device.skip(1000)
        self.passes(ahead, ahead.request("POST", "/raw/a", BODY))
        # Its counter is below that of the key ahead: only its own key is tried.
        message = behind.request("POST", "/raw/a", BODY)
        self.refused(behind, message.changed(body=b"other"), "challenge_required",
                     "counter_not_greater")
        self.passes(behind, message)
        behind.device.skip(2000)
        message = behind.request("POST", "/raw/a", BODY)
        self.refused(behind, message.changed(body=b"other"), "rejected", "signature_invalid")

    def test_a_key_id_field_is_used_where_it_is_there(self):
        account = "account-with-ids"
        one, two = [self.style(styles.RawBody, account).enrolled() for _ in range(2)]
        message = one.request("POST", "/raw/a", BODY)
        self.refused(one, message.with_field("App-Attest-Key-Id", two.key_id), "rejected",
                     "signature_invalid")
        self.passes(one, message.with_field("App-Attest-Key-Id", one.key_id))

    def test_revoked_keys_are_not_tried(self):
        client = self.style(styles.RawBody).enrolled()
        self.assertEqual(client.post("keys/revoke", {"keyID": client.key_id}).status, 204)
        message = client.request("POST", "/raw/a", BODY)
        self.refused(client, message, "enrollment_required", "key_unknown")
        second = self.style(styles.RawBody, client.account[0][1]).enrolled()
        self.passes(second, second.request("POST", "/raw/a", BODY))
        client.device.skip(50)
        self.refused(client, client.request("POST", "/raw/a", BODY), "rejected",
                     "signature_invalid")

    def test_an_account_without_keys_must_enrol(self):
        client = self.style(styles.RawBody)
        self.refused(client, client.request("POST", "/raw/a", BODY), "enrollment_required",
                     "key_unknown")

    def test_the_other_bindings_need_no_key_id_either(self):
        client = self.style(styles.ChallengeInBody).enrolled()
        client.assertion_field = "X-App-Assertion"
        message = client.request("POST", "/scores/a", {"points": 1})
        self.passes(client, message.without("App-Attest-Key-Id"))
        client = self.style(styles.Envelope).enrolled()
        members = client.members("POST", "/orders/a", BODY)
        del members["keyID"]
        message = styles.Message("POST", "/orders/a", [], json.dumps(members).encode())
        self.passes(client, message, BODY)
        client = self.style(styles.RequestLines).enrolled()
        client.assertion_field = "X-App-Assertion"
        message = client.request("POST", "/signed/a", BODY)
        self.passes(client, message.without("App-Attest-Key-Id"))
        client = self.style(styles.SeparateFields).enrolled()
        client.assertion_field = "X-App-Assertion"
        message = client.request("POST", "/fields/a", BODY)
        self.passes(client, message.without("App-Attest-Key-Id"))

    def test_a_first_request_needs_no_key_id_either(self):
        client = self.style(styles.FirstFields)
        client.assertion_field = "X-App-Assertion"
        self.passes(
            client, client.first("POST", "/first/a", BODY).without("App-Attest-Key-Id"))
        self.passes(
            client, client.request("POST", "/first/a", BODY).without("App-Attest-Key-Id"))


class ChallengeInBody(StyleCase):
    """The body is signed, and the challenge stands in it."""

    kinds = {styles.ChallengeInBody: "/scores", styles.ChallengeDeepInBody: "/nested"}

    def test_the_body_passes_as_it_was_signed(self):
        for kind, path in self.kinds.items():
            client = self.style(kind).enrolled()
            message = client.request("POST", f"{path}/a", {"points": 4200})
            request = self.passes(client, message)
            self.assertEqual(request.get("Content-Type"), "application/json")
            # The answer brought the next challenge.
            text = client.next_challenge
            self.passes(client, client.request("POST", f"{path}/a", {"points": 1}, text))

    def test_its_replay_and_an_altered_body_are_refused(self):
        for kind, path in self.kinds.items():
            client = self.style(kind).enrolled()
            message = client.request("POST", f"{path}/a", {"points": 4200})
            altered = message.body.replace(b"4200", b"9200")
            self.assertNotEqual(altered, message.body)
            self.refused(client, message.changed(body=altered), "rejected", "signature_invalid")
            spaced = json.dumps(json.loads(message.body), indent=1).encode()
            self.refused(client, message.changed(body=spaced), "rejected", "signature_invalid")
            self.passes(client, message)
            self.refused(client, message, "challenge_required", "challenge_spent")

    def test_the_path_is_not_signed_but_the_purpose_is(self):
        client = self.style(styles.ChallengeInBody).enrolled()
        message = client.request("POST", "/scores/a", {})
        for target in ("/first-body/a", "/watched/scores/a"):
            if target.startswith("/watched"):
                request = self.check_upstream(client.deliver(message.changed(target=target)))
                self.assertEqual(request.get("App-Attest-Verdict"), "monitored")
            else:
                self.refused(client, message.changed(target=target), "challenge_required",
                             "challenge_unknown")
        self.passes(client, message.changed(target="/scores/b"))

    def test_a_body_that_spoils_its_challenge_is_a_bad_request(self):
        client = self.style(styles.ChallengeInBody).enrolled()
        text = client.challenge_text("score")
        for body in (
            b"", b"{", b"[]", b"{}", b'"' + text.encode() + b'"', b'{"challenge": 1}',
            b'{"challenge": null}', b'{"challenge": ["%s"]}' % text.encode(),
            b'{"challenge": "not base64"}',
            b'{"challenge": "%s", "challenge": "%s"}' % (text.encode(), text.encode()),
            b'{"challenge": "%s", "\\u0063hallenge": 1}' % text.encode(),
            b'\xef\xbb\xbf{"challenge": "%s"}' % text.encode(),
            b'{"challenge": "%s"} x' % text.encode(),
            b'{"challenge": "%s", "a": "\xff"}' % text.encode(),
        ):
            fields = [("App-Attest-Key-Id", client.key_id),
                      ("App-Attest-Assertion", client.sign(body))]
            self.refused(client, styles.Message("POST", "/scores/a", fields, body),
                         "bad_request", "client_data_malformed")

    def test_a_challenge_that_is_not_good(self):
        client = self.style(styles.ChallengeInBody).enrolled()
        other = self.style(styles.ChallengeInBody).enrolled()
        text = client.challenge_text("score")
        identifier = text.split(".")[0]
        for bad in (other.challenge_text("score"), client.challenge_text("nested"),
                    text[:-2] + "AA", identifier, app.b64(identifier.encode()), "a.b", ""):
            message = client.request("POST", "/scores/a", {}, bad) if bad else None
            if message:
                self.refused(client, message, "challenge_required", "challenge_unknown")
        again = client.next_challenge
        self.passes(client, client.request("POST", "/scores/a", {}, again))

    def test_a_body_in_the_spool_is_read(self):
        client = self.style(styles.ChallengeInBody).enrolled()
        message = client.request("POST", "/scores/a", {"filler": "x" * 300_000})
        self.passes(client, message)
        message = client.request("POST", "/scores/a", {"filler": "x" * (1 << 20)})
        answer = client.deliver(message)
        self.check_problem(answer, "too_large", 413)

    def test_the_key_is_judged_after_the_challenge(self):
        client = self.style(styles.ChallengeInBody)
        message = client.request("POST", "/scores/a", {})
        self.refused(client, message, "enrollment_required", "key_unknown")
        self.refused(client, client.request("POST", "/scores/a", {}, "a.b"),
                     "challenge_required", "challenge_unknown")

    def test_a_monitored_body_too_large_for_memory_streams_on(self):
        client = self.style(styles.ChallengeInBody).enrolled()
        body = b"x" * 300_000
        fields = [("App-Attest-Key-Id", client.key_id),
                  ("App-Attest-Assertion", client.sign(body))]
        with app.wire.Connection(self.gate.address) as connection:
            answer = connection.ask("POST", "/watched/scores/a", [*client.account, *fields], body,
                                    chunked=True)
        request = self.check_upstream(answer)
        self.assertEqual(request.body, body)
        self.assertEqual(request.get("App-Attest-Verdict"), "monitored")
        self.check_reason(answer, "unverifiable")


class Envelope(StyleCase):
    """One JSON object of base64 members."""

    def test_the_inner_body_alone_goes_on(self):
        client = self.style(styles.Envelope).enrolled()
        for body in (BODY, b"", b"\x00\xff" * 500):
            message = client.request("POST", "/orders/a?b=c", body)
            request = self.passes(client, message, body)
            self.assertEqual(request.get("Content-Type"), "application/json")
            self.assertEqual(request.get("Content-Length"), str(len(body)))
            self.assertIsNone(request.get("Transfer-Encoding"))

    def test_the_signed_content_type_goes_on(self):
        client = self.style(styles.Envelope).enrolled()
        for text in ("text/plain; charset=utf-8", "a/b", "x" * 256):
            client.more = {"contentType": text}
            message = client.request("POST", "/orders/a", b"text")
            request = self.passes(client, message, b"text")
            self.assertEqual(request.get("Content-Type"), text)
        for value in ("a/b\r\nX-Evil: 1", "", " a/b", "a/b ", "a/b\u00e9", "x" * 257, 1, None, []):
            client.more = {"contentType": value}
            message = client.request("POST", "/orders/a", b"text")
            self.refused(client, message, "rejected", "client_data_malformed")

    def test_other_content_types_of_the_wire_are_replaced(self):
        client = self.style(styles.Envelope).enrolled()
        message = client.request("POST", "/orders/a", BODY)
        message.fields += [("Content-Type", "text/html"), ("content.type", "text/xml")]
        request = self.passes(client, message, BODY)
        self.assertEqual(request.all("Content-Type"), ["application/json"])
        self.assertEqual(request.all("content.type"), [])

    def test_its_operation_id_goes_on(self):
        client = self.style(styles.Envelope).enrolled()
        client.more = {"operationID": "op-1"}
        request = self.passes(client, client.request("POST", "/orders/a", BODY), BODY)
        self.assertEqual(request.get("Idempotency-Key"), "op-1")

    def test_its_replay_altered_body_and_altered_path_are_refused(self):
        client = self.style(styles.Envelope).enrolled()
        members = client.members("POST", "/orders/a", BODY)
        message = styles.Message("POST", "/orders/a", [], json.dumps(members).encode())
        altered = {**members, "body": app.b64(BODY + b" ")}
        self.refused(client, message.changed(body=json.dumps(altered).encode()), "rejected",
                     "body_mismatch")
        self.refused(client, message.changed(target="/orders/b"), "rejected", "target_mismatch")
        self.refused(client, message.changed(target="/orders/a?x"), "rejected", "target_mismatch")
        self.refused(client, message.changed(method="PUT"), "rejected", "method_mismatch")
        data = json.loads(base64.b64decode(members["clientData"]))
        data["bodySHA256"] = app.b64(app.sha256(b"evil"))
        forged = {**members, "clientData": app.b64(json.dumps(data).encode()),
                  "body": app.b64(b"evil")}
        self.refused(client, message.changed(body=json.dumps(forged).encode()), "rejected",
                     "signature_invalid")
        # Nothing of all that was spent: the commit comes after the body.
        self.passes(client, message, BODY)
        self.refused(client, message, "challenge_required", "challenge_spent")

    def test_another_purpose_and_another_key(self):
        client = self.style(styles.Envelope).enrolled()
        message = client.request("POST", "/orders/a", BODY, purpose="fields")
        self.refused(client, message, "challenge_required", "challenge_unknown")
        other = self.style(styles.Envelope)
        self.refused(other, other.request("POST", "/orders/a", BODY), "enrollment_required",
                     "key_unknown")

    def test_what_may_not_stand_beside_it(self):
        client = self.style(styles.Envelope).enrolled()
        message = client.request("POST", "/orders/a", BODY)
        fields = SeparateFields.proof_of(self, client)
        for name, value in [
            *fields, ("App-Attest-Challenge", "abc"), ("App-Attest-Attestation", "AAAA"),
            ("Content-Encoding", "identity"), ("Content-Encoding", "gzip"),
            ("Content.Encoding", "gzip"), ("Content-Digest", "sha-256=:AAAA:"),
        ]:
            with self.subTest(name=name):
                self.refused(client, message.with_field(name, value), "bad_request",
                             "proof_malformed")
        message = client.request("POST", "/orders/a", BODY)
        message.fields += [("App-Attest-Unsupported", "?1"), ("App-Attest-Device-Token", "AAAA")]
        self.passes(client, message, BODY)

    def test_malformed_envelopes_are_bad_requests(self):
        client = self.style(styles.Envelope).enrolled()
        members = client.members("POST", "/orders/a", BODY)
        good = json.dumps(members)
        bodies = [b"{", b"[]", b"null", b"\x00", good.encode() + b"x",
                  good.replace('{"keyID"', '{"body": "", "keyID"', 1).encode(),
                  good.replace('{"keyID"', '{"\\u0062ody": "", "keyID"', 1).encode()]
        for name in members:
            bodies.append(json.dumps({k: v for k, v in members.items() if k != name}).encode())
            for value in (1, None, [members[name]], "!", members[name] + "\n", "A"):
                bodies.append(json.dumps({**members, name: value}).encode())
            if name != "body":
                bodies.append(json.dumps({**members, name: ""}).encode())
                bodies.append(json.dumps({**members, name: "A" * 8196}).encode())
        bodies.append(json.dumps({**members, "keyID": app.b64(b"x" * 31)}).encode())
        for body in bodies:
            with self.subTest(body=body[:70]):
                self.refused(client, styles.Message("POST", "/orders/a", [], body), "bad_request")
        for size in range(0, len(good), 97):
            if size:
                self.refused(client, styles.Message(
                    "POST", "/orders/a", [], good[:size].encode()), "bad_request")
        self.passes(client, styles.Message("POST", "/orders/a", [], good.encode()), BODY)

    def test_no_envelope_is_no_proof(self):
        client = self.style(styles.Envelope).enrolled()
        for body in (None, b"", b"{}", b'{"body": "AAAA"}', b'{"other": 1}'):
            message = styles.Message("POST", "/orders/a", [], body)
            self.refused(client, message, "proof_required", "proof_absent")
            unsupported = message.with_field("App-Attest-Unsupported", "?1")
            self.refused(client, unsupported, "unsupported", "unsupported")

    def test_limits_apply_to_the_wire(self):
        client = self.style(styles.Envelope).enrolled()
        body = b"x" * 600_000
        self.passes(client, client.request("POST", "/orders/a", body), body)
        message = client.request("POST", "/orders/a", b"x" * 800_000)
        self.assertGreater(len(message.body), 1 << 20)
        answer = client.deliver(message)
        self.check_problem(answer, "too_large", 413)

    def test_a_monitored_envelope(self):
        client = self.style(styles.Envelope).enrolled()
        message = client.request("POST", "/watched/orders/a", BODY)
        answer = client.deliver(message)
        request = self.check_upstream(answer)
        self.assertEqual((request.body, request.get("App-Attest-Verdict")), (BODY, "verified"))
        self.assertIsNone(answer.get("App-Attest-Next-Challenge"))
        self.service.reset()
        request = self.check_upstream(client.deliver(message))
        self.assertEqual(request.body, message.body)
        self.assertEqual(request.get("App-Attest-Verdict"), "monitored")
        self.assertEqual(request.get("Content-Type"), "application/vnd.sealed+json")
        self.service.reset()
        members = client.members("POST", "/watched/orders/a", BODY)
        altered = json.dumps({**members, "body": "AAAA"}).encode()
        answer = client.deliver(styles.Message("POST", "/watched/orders/a", [], altered))
        self.assertEqual(self.check_upstream(answer).body, altered)
        self.check_reason(answer, "body_mismatch")


class SeparateFields(StyleCase):
    """A field each, under names of the operator's."""

    proof = [
        "proof {", "key_id header X-App-Key", "assertion header X-App-Assertion",
        "client_data header X-App-Data", "challenge header X-App-Challenge",
        "attestation header X-App-Attestation", "}",
    ]

    def style(self, kind, account=None, device=None):
        client = super().style(kind, account, device)
        client.key_field, client.assertion_field = "X-App-Key", "X-App-Assertion"
        client.data_field, client.challenge_field = "X-App-Data", "X-App-Challenge"
        client.attestation_field = "X-App-Attestation"
        return client

    @staticmethod
    def proof_of(test, client):
        """The three standard fields, for what they are beside."""
        challenge = client.challenge("fields")
        message = styles.SeparateFields.request(
            styles.SeparateFields(client.address, client.device), "POST", "/x", b"", challenge)
        return message.fields

    def test_they_pass_and_the_next_challenge_serves(self):
        client = self.style(styles.SeparateFields).enrolled()
        self.passes(client, client.request("POST", "/fields/a?b", BODY))
        identifier, mac = client.next_challenge.split(".")
        challenge = identifier, base64.urlsafe_b64decode(mac + "=")
        self.passes(client, client.request("GET", "/fields/a", None, challenge))

    def test_request_lines_pass_with_a_challenge_by_value(self):
        client = self.style(styles.RequestLines).enrolled()
        self.passes(client, client.request("POST", "/signed/a?b", BODY))
        text = client.next_challenge
        self.passes(client, client.request("DELETE", "/signed/a", None, text))

    def test_replay_altered_body_and_altered_path_are_refused(self):
        for kind, path in ((styles.SeparateFields, "/fields"), (styles.RequestLines, "/signed")):
            client = self.style(kind).enrolled()
            message = client.request("POST", f"{path}/a", BODY)
            self.passes(client, message)
            self.refused(client, message, "challenge_required", "challenge_spent")
            message = client.request("POST", f"{path}/a", BODY)
            self.refused(client, message.changed(target=f"{path}/b"), "rejected")
            message = client.request("POST", f"{path}/a", BODY)
            self.refused(client, message.changed(method="PUT"), "rejected")
            message = client.request("POST", f"{path}/a", BODY)
            self.refused(client, message.changed(body=BODY + b"\n"), "rejected")

    def test_the_standard_names_are_no_proof_here_and_go_no_further(self):
        client = self.style(styles.SeparateFields).enrolled()
        message = client.request("POST", "/fields/a", BODY)
        standard = {"X-App-Key": "App-Attest-Key-Id", "X-App-Assertion": "App-Attest-Assertion",
                    "X-App-Data": "App-Attest-Client-Data"}
        moved = message.changed(fields=[(standard[name], text) for name, text in message.fields])
        self.refused(client, moved, "proof_required", "proof_absent")
        both = message.changed(fields=[*message.fields, *moved.fields, (
            "App-Attest-Attestation", "AAAA"), ("app_attest_key_id", "x"),
            ("App.Attest.Challenge", "x"), ("x.app.key", "x")])
        request = self.passes(client, both)
        for name in request.names:
            self.assertFalse(name.lower().startswith("x-app") or name.startswith("x.app"), name)
        kept = [name for name in request.names if name.lower().startswith("app")]
        self.assertEqual(sorted(kept), [
            "App-Attest-Account", "App-Attest-App", "App-Attest-Counter", "App-Attest-Risk",
            "App-Attest-Verdict", "App-Attest-Verified-Key"])

    def test_renamed_fields_are_not_to_be_named_in_connection(self):
        client = self.style(styles.SeparateFields).enrolled()
        message = client.request("POST", "/fields/a", BODY)
        message.fields.append(("Connection", "X-App-Key"))
        self.refused(client, message, "bad_request")

    def test_a_first_request(self):
        client = self.style(styles.FirstFields)
        self.passes(client, client.first("POST", "/first/a", BODY))


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
