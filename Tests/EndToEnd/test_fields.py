"""What the upstream sees of the fields (protocol.md §6), and whose word is believed (§7)."""

import app
import case
import gate as gates

TRUSTED = "127.0.0.2"


class Removed(case.SharedGate):
    """From a peer that is no trusted proxy, on a host with protected routes."""

    def sent(self, fields, target="/public"):
        self.service.reset()
        return self.check_upstream(self.ask("GET", target, fields))

    def test_our_names_in_every_spelling_on_every_route(self):
        names = ["App-Attest-Verdict", "App-Attest-Verified-Key", "App-Attest-Account",
                 "App-Attest-App", "App-Attest-Counter", "App-Attest-Risk", "App-Attest-Key-Id",
                 "App-Attest-Assertion", "App-Attest-Client-Data", "App-Attest-Challenge",
                 "App-Attest-Attestation", "App-Attest-Device-Token",
                 "App-Attest-Next-Challenge"]
        forged = []
        for name in names:
            forged += [(name, "forged"), (name.upper(), "forged"), (name.lower(), "forged"),
                       (name.replace("-", "_"), "forged"), (name.replace("-", "."), "forged"),
                       ("App-Attest_" + name[11:], "forged")]
        for at in range(0, len(forged), 60):
            request = self.sent(forged[at : at + 60])
            self.assertNotIn(b"forged", request.head)
            self.assertEqual(request.get("App-Attest-Verdict"), "off")
            self.assertEqual(request.get("App-Attest-App"), "shop;env=production")

    def test_names_with_an_underscore_are_dropped(self):
        request = self.sent([("X_Plain", "a"), ("X-Plain", "b"), ("Content_Length", "5")])
        self.assertEqual([name for name in request.names if "_" in name], [])
        self.assertEqual(request.get("X-Plain"), "b")

    def test_fields_that_choose_another_route_or_speak_for_the_client(self):
        for name in ("Proxy", "X-Original-URL", "X-Original-Host", "X-Original-Method",
                     "X-Rewrite-URL", "X-Forwarded-User", "X-Forwarded-Uri", "Forwarded",
                     "X-Real-IP", "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"):
            with self.subTest(name=name):
                self.assertNotIn(b"forged", self.sent([(name, "forged")]).head)
        request = self.sent([("X-Forwarded-For", "1.2.3.4"), ("X-Forwarded-Proto", "forged"),
                             ("X-Forwarded-Host", "forged"), ("X-Request-Id", "forged")])
        self.assertNotIn(b"forged", request.head)
        self.assertEqual(request.get("X-Forwarded-For"), "127.0.0.1")

    def test_hop_by_hop_fields_and_what_connection_names(self):
        request = self.sent([
            ("Connection", "keep-alive, X-Named"), ("Connection", "x-other , Keep-Alive"),
            ("X-Named", "gone"), ("X-Other", "gone"), ("Keep-Alive", "gone"),
            ("Proxy-Connection", "gone"), ("Proxy-Authorization", "gone"), ("TE", "trailers"),
            ("Trailer", "gone"), ("Upgrade", "gone"), ("HTTP2-Settings", "gone"), ("X-Stays", "a")])
        self.assertNotIn(b"gone", request.head)
        self.assertEqual(request.all("TE"), [])
        self.assertEqual(request.get("X-Stays"), "a")

    def test_connection_cannot_take_away_what_the_gate_adds(self):
        request = self.sent([("Connection", "App-Attest-Verdict, X-Forwarded-For, Via")])
        self.assertEqual(request.get("App-Attest-Verdict"), "off")
        self.assertEqual(request.get("X-Forwarded-For"), "127.0.0.1")
        self.assertTrue(request.get("Via"))

    def test_connection_may_not_name_what_matters_end_to_end(self):
        for name in ("Host", "Content-Length", "Transfer-Encoding", "Authorization", "Cookie",
                     "Content-Type", "Content-Encoding", "App-Attest-Key-Id",
                     "App-Attest-Assertion", "App-Attest-Client-Data", "app_attest_challenge"):
            with self.subTest(name=name):
                self.service.reset()
                answer = self.ask("POST", "/public", [("Connection", f"close, {name.lower()}")],
                                  b"x")
                self.check_problem(answer, "bad_request")
                self.check_nothing_upstream()

    def test_the_rest_passes_with_order_and_spelling(self):
        fields = [("x-a", "1"), ("Range", "bytes=0-1"), ("X-A", "2"), ("If-Range", '"x"'),
                  ("aCCept", "a, b"), ("X-Empty", ""), ("X-Bytes", "\u00e9\u00ff"),
                  ("Via", "1.0 other"), ("X-Spaces", "a  \t b")]
        request = self.sent(fields)
        names = {name.lower() for name, _ in fields}
        kept = [(name, value) for name, value in request.fields
                if name.lower() in names and value != "1.1 attestgate"]
        self.assertEqual([pair for pair in kept if pair[0] != "Via"],
                         [pair for pair in fields if pair[0] != "Via"])
        self.assertEqual(", ".join(request.all("Via")), "1.0 other, 1.1 attestgate")

    def test_trailers_are_dropped(self):
        text = (f"POST /public HTTP/1.1\r\nHost: {gates.HOST}\r\nTransfer-Encoding: chunked\r\n"
                "\r\n2\r\n{}\r\n0\r\nX-Trailer: gone\r\nContent-Length: 9\r\n\r\n")
        self.assertEqual(self.raw(text, method="POST").status, 200)
        self.assertNotIn(b"gone", self.service.raw)

    def test_chunk_extensions_are_not_forwarded(self):
        text = (f"POST /public HTTP/1.1\r\nHost: {gates.HOST}\r\nTransfer-Encoding: chunked\r\n"
                '\r\n2;secret="x"\r\n{}\r\n0\r\n\r\n')
        self.assertEqual(self.raw(text, method="POST").status, 200)
        self.assertNotIn(b"secret", self.service.raw)
        self.assertEqual(self.service.wait(1)[0].body, b"{}")

    def test_a_post_without_body_has_length_zero(self):
        self.service.reset()
        request = self.check_upstream(self.ask("POST", "/public"))
        self.assertEqual(request.get("Content-Length"), "0")


class Underscores(case.Case):
    def test_reject(self):
        self.run_gate(lambda settings: settings.host.append("underscores reject"))
        answer = self.ask("GET", "/public", [("X_Plain", "a")])
        self.check_problem(answer, "bad_request")
        self.check_nothing_upstream()

    def test_keep_still_drops_ours(self):
        self.run_gate(lambda settings: settings.host.append("underscores keep"))
        answer = self.ask("GET", "/public", [("X_Plain", "a"), ("App_Attest_Verdict", "forged")])
        request = self.check_upstream(answer)
        self.assertEqual(request.get("X_Plain"), "a")
        self.assertNotIn(b"forged", request.head)


class Accounts(case.SharedGate):
    """`account header`: from the trusted proxy at 127.0.0.2 alone."""

    @classmethod
    def configure(cls, settings):
        settings.listener.append(f"trusted_proxies {TRUSTED}/32")
        settings.account = "header X-Account-Id"

    def phone(self, account, device=None, source=TRUSTED):
        return self.app(device, account=account, source=source)

    def test_the_account_goes_upstream(self):
        for account, shown in (("alice", "alice"), ("a b%", "a%20b%25"), ("\u00e9", "%E9"),
                               ("x" * 256, "x" * 256)):
            self.service.reset()
            phone = self.phone(account).enrolled()
            request = self.check_upstream(phone.send("GET", "/v1/data/a"))
            self.assertEqual(request.get("App-Attest-Account").upper(), shown.upper())
            self.assertEqual(request.get("App-Attest-Verdict"), "verified")

    def test_without_an_account_one_is_required(self):
        for phone in (self.phone(None), self.phone(""), self.phone("alice", source="127.0.0.1")):
            for call, members in (("challenges", {"purpose": "request"}),
                                  ("keys/status", {"keyID": phone.key_id}),
                                  ("keys/revoke", {"keyID": phone.key_id})):
                self.check_problem(phone.call(call, members), "account_required")
            self.check_problem(phone.ask("GET", "/v1/data/a"), "account_required")
            self.check_problem(
                phone.ask("GET", "/v1/app-attest/challenge"), "account_required")
        self.check_nothing_upstream()

    def test_a_malformed_account_is_a_bad_request(self):
        for fields in ([("X-Account-Id", "a"), ("X-Account-Id", "a")],
                       [("X-Account-Id", "x" * 257)], [("X-Account-Id", "a\tb")]):
            answer = self.ask("GET", "/v1/data/a", fields, source=TRUSTED)
            self.check_problem(answer, "bad_request")
        self.check_nothing_upstream()

    def test_off_and_denied_routes_need_none(self):
        request = self.check_upstream(self.ask("GET", "/public", source=TRUSTED))
        self.assertEqual(request.all("App-Attest-Account"), [])
        self.check_problem(self.ask("GET", "/closed/a", source=TRUSTED), "not_found")

    def test_the_account_field_of_others_is_removed(self):
        for name in ("X-Account-Id", "x_account_id", "X.Account.Id"):
            self.service.reset()
            request = self.check_upstream(self.ask("GET", "/public", [(name, "forged")]))
            self.assertNotIn(b"forged", request.head)

    def test_connection_may_not_name_the_account_field(self):
        answer = self.ask("GET", "/public", [("Connection", "x-account-id")], source=TRUSTED)
        self.check_problem(answer, "bad_request")

    def test_a_key_belongs_to_one_account(self):
        device = self.device()
        alice, bob = self.phone("alice", device).enrolled(), self.phone("bob", device)
        answer = bob.enrol()
        self.check_problem(answer, "rejected")
        self.check_reason(answer, "key_foreign")
        status = bob.call("keys/status", {"keyID": alice.key_id})
        self.assertEqual(status.json, {"registered": False})
        answer = bob.send("GET", "/v1/data/a")
        self.check_problem(answer, "enrollment_required")
        self.check_reason(answer, "key_foreign")
        self.check_nothing_upstream()
        self.assertEqual(alice.send("GET", "/v1/data/a").status, 200)

    def test_a_challenge_belongs_to_one_account(self):
        alice, bob = self.phone("alice").enrolled(), self.phone("bob").enrolled()
        answer = alice.send("GET", "/v1/data/a", challenge=bob.challenge())
        self.check_problem(answer, "challenge_required")
        challenge = self.check_next_challenge(answer)
        self.assertEqual(alice.send("GET", "/v1/data/a", challenge=challenge).status, 200)
        stranger = self.phone("carol")
        answer = stranger.enrol(bob.challenge("attestation"))
        self.check_problem(answer, "challenge_required")

    def test_revoking_needs_no_proof_and_stays_in_the_account(self):
        alice, bob = self.phone("alice").enrolled(), self.phone("bob").enrolled()
        self.assertEqual(bob.call("keys/revoke", {"keyID": alice.key_id}).status, 204)
        self.assertEqual(alice.send("GET", "/v1/data/a").status, 200)
        self.assertEqual(alice.call("keys/revoke", {"keyID": alice.key_id}).status, 204)
        answer = alice.send("GET", "/v1/data/a")
        self.check_problem(answer, "enrollment_required")
        self.check_reason(answer, "key_revoked")

    def test_monitored_routes_only_count_a_missing_account(self):
        answer = self.ask("GET", "/v1/watched/a", source=TRUSTED)
        request = self.check_upstream(answer)
        self.assertEqual(request.get("App-Attest-Verdict"), "monitored")
        self.assertEqual(self.gate.logged(answer)["reason"], "account_absent")

    def test_a_trusted_proxy_is_believed_about_the_client(self):
        fields = [("X-Forwarded-For", "198.51.100.7"), ("X-Forwarded-Proto", "https"),
                  ("X-Forwarded-Host", "shop.example"), ("X-Request-Id", "from-the-edge.1")]
        answer = self.ask("GET", "/public", fields, source=TRUSTED)
        request = self.check_upstream(answer)
        self.assertEqual(", ".join(request.all("X-Forwarded-For")), f"198.51.100.7, {TRUSTED}")
        self.assertIn("https", ", ".join(request.all("X-Forwarded-Proto")))
        self.assertIn("shop.example", ", ".join(request.all("X-Forwarded-Host")))
        self.assertEqual(request.get("X-Request-Id"), "from-the-edge.1")
        self.assertEqual(answer.get("X-Request-Id"), "from-the-edge.1")
        for wrong in ("a b", "x" * 129, "a;b", ""):
            self.service.reset()
            answer = self.ask("GET", "/public", [("X-Request-Id", wrong)], source=TRUSTED)
            self.assertNotEqual(self.check_upstream(answer).get("X-Request-Id"), wrong)

    def test_the_log_hashes_accounts(self):
        phone = self.phone("alice-in-the-log").enrolled()
        entry = self.gate.logged(phone.send("GET", "/v1/data/a"))
        self.assertTrue(entry["account"])
        self.assertNotIn("alice-in-the-log", self.gate.out.text)


class KeysPerAccount(case.Case):
    def test_over_the_limit_a_key_is_rejected(self):
        def change(settings):
            settings.listener.append(f"trusted_proxies {TRUSTED}/32")
            settings.account = "header X-Account-Id"
            settings.app.append("keys_per_account 2")
        self.run_gate(change)
        phones = [self.app(account="alice", source=TRUSTED) for _ in range(3)]
        self.assertEqual([phone.enrol().status for phone in phones[:2]], [201, 201])
        answer = phones[2].enrol()
        self.check_problem(answer, "rejected")
        self.check_reason(answer, "key_limit")
        self.assertEqual(phones[0].enrol().status, 200)
        self.assertEqual(self.app(account="bob", source=TRUSTED).enrol().status, 201)
        self.assertEqual(
            phones[0].call("keys/revoke", {"keyID": phones[0].key_id}).status, 204)
        self.assertEqual(phones[2].enrol().status, 201)


class Rates(case.Case):
    def limits(self, **rates):
        def change(settings):
            settings.listener.append(f"trusted_proxies {TRUSTED}/32")
            settings.account = "header X-Account-Id"
            settings.rates = {**settings.rates, **rates}
        self.run_gate(change)

    def phone(self, account):
        return self.app(account=account, source=TRUSTED)

    def check_limit(self, answer, name, count, window, left):
        """The fields of draft-ietf-httpapi-ratelimit-headers."""
        self.assertEqual(answer.get("RateLimit-Policy"), f'"{name}";q={count};w={window}')
        self.assertRegex(answer.get("RateLimit") or "", f'^"{name}";r={left};t=[0-9]+$')

    def test_challenges_per_account(self):
        self.limits(challenges="per_account=3/1h")
        alice = self.phone("alice")
        for left in (2, 1, 0):
            answer = alice.call("challenges", {"purpose": "request"})
            self.assertEqual(answer.status, 200)
            self.check_limit(answer, "challenges", 3, 3600, left)
        answer = alice.call("challenges", {"purpose": "request"})
        self.check_problem(answer, "rate_limited")
        self.check_reason(answer, "rate_limited")
        self.check_limit(answer, "challenges", 3, 3600, 0)
        self.assertIn(f";t={answer.get('Retry-After')}", answer.get("RateLimit"))
        self.assertEqual(self.phone("bob").call("challenges", {"purpose": "request"}).status, 200)

    def test_attestations_per_account_failed_ones_counted(self):
        self.limits(attestations="per_account=2/1h per_address=1000/1h")
        phone = self.phone("alice")
        challenge = phone.challenge("attestation")
        self.check_problem(phone.enrol(challenge, object_=b"junk"), "rejected")
        enrolled = phone.enrol(challenge)
        self.assertEqual(enrolled.status, 201)
        self.check_limit(enrolled, "attestations", 2, 3600, 0)
        refused = phone.enrol()
        self.check_problem(refused, "rate_limited")
        self.check_limit(refused, "attestations", 2, 3600, 0)
        self.assertEqual(self.phone("bob").enrol().status, 201)

    def test_failed_signatures_per_account(self):
        self.limits(failed_signatures="per_account=2/1h per_address=1000/1h")
        phone = self.phone("alice").enrolled()
        other = self.device()
        for _ in range(2):
            proof = app.App(self.gate.address, other, "alice", TRUSTED).prove(
                "GET", "/v1/data/a", None, phone.challenge(), counter=1000)
            proof[0] = ("App-Attest-Key-Id", phone.key_id)
            self.check_problem(phone.ask("GET", "/v1/data/a", proof), "rejected")
        refused = phone.send("GET", "/v1/data/a")
        self.check_problem(refused, "rate_limited")
        self.check_limit(refused, "failed_signatures", 2, 3600, 0)
        self.assertEqual(self.phone("bob").enrolled().send("GET", "/v1/data/a").status, 200)
        self.assertEqual(len(self.service.requests), 1)
