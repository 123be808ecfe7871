"""Each client style of the field, as its app would send it: what passes, to the byte; and its
replay, altered body and altered path (where that is bound) refused."""

import base64
import json

import app
import styles
from style_case import BODY, StyleCase


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

    def test_a_member_is_no_longer_than_a_field(self):
        client = self.style(styles.Envelope).enrolled()
        client.more = {"filler": "x" * 5000}
        self.passes(client, client.request("POST", "/orders/a", BODY), BODY)
        client.more = {"filler": "x" * 6200}
        self.refused(client, client.request("POST", "/orders/a", BODY), "bad_request",
                     "proof_malformed")

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
