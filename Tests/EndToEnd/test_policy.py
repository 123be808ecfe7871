"""The policy of a route: `require`, shares, fallbacks (conf.md §3 and §4, protocol.md §8)."""

import os

import app
import case
import wire

TRUSTED = "127.0.0.2"


class Unreadable(app.peer_attest.Device):
    """A device whose system puts something behind the authenticator data that is no map."""

    def extensions(self):
        return b"\xff\xff"


class Require(case.SharedGate):
    @classmethod
    def configure(cls, settings):
        for path, lines in {
            "category": ["require category development"],
            "lenient": ["require category app_store absent"],
            "version": ["require bundle_version >= 1314"],
            "newer": ["require bundle_version >= 1314.1 absent"],
            "metric": ["require metric <= 20"],
            "metric-absent": ["require metric <= 20 absent"],
            "old": ["require key_age >= 1h"],
            "young": ["require key_age >= 1s"],
            "signed": ["require category app_store", "bind request"],
            "watched": ["mode monitor", "require category app_store"],
        }.items():
            settings.routes[f"* /v1/{path}/*"] = lines

    def check_rejected(self, answer, reason):
        self.check_problem(answer, "rejected")
        self.check_reason(answer, reason)

    def test_each_condition_passes_or_rejects_by_its_own_name(self):
        apps = {shape: self.app(self.device(shape)).enrolled()
                for shape in ("ios17", "ios27", "macos27")}
        cases = [
            ("category", {"ios17": "policy_category", "macos27": "policy_category"}),
            ("lenient", {"ios27": "policy_category", "macos27": "policy_category"}),
            ("version", {"ios17": "policy_version", "macos27": "policy_version"}),
            ("newer", {"ios27": "policy_version"}),
            ("metric", dict.fromkeys(apps, "policy_metric")),
            ("metric-absent", {}),
            ("old", dict.fromkeys(apps, "policy_key_age")),
        ]
        for path, refused in cases:
            for shape, phone in apps.items():
                with self.subTest(path=path, shape=shape):
                    answer = phone.send("POST", f"/v1/{path}/a", b"x")
                    if shape in refused:
                        self.check_rejected(answer, refused[shape])
                    else:
                        self.assertEqual(answer.status, 200, answer)

    def test_the_binding_request_is_asked_as_well(self):
        phone = self.app(self.device("ios27")).enrolled()
        answer = phone.send("POST", "/v1/signed/a", b"x", binding="request")
        self.check_rejected(answer, "policy_category")
        self.check_nothing_upstream()

    def test_a_rejected_request_spends_nothing(self):
        phone = self.app(self.device("ios27")).enrolled()
        challenge = phone.challenge()
        answer = phone.send("POST", "/v1/lenient/a", b"x", challenge=challenge)
        self.check_rejected(answer, "policy_category")
        self.assertEqual(
            phone.send("POST", "/v1/category/a", b"x", challenge=challenge).status, 200)

    def test_a_bad_signature_is_not_told_from_a_policy_but_logged_as_such(self):
        phone = self.app(self.device("ios27")).enrolled()
        policy = phone.send("POST", "/v1/lenient/a", b"x")
        proof = dict(phone.prove("POST", "/v1/lenient/a", b"x", phone.challenge()))
        other = dict(phone.prove("POST", "/v1/lenient/a", b"y", phone.challenge()))
        proof["App-Attest-Client-Data"] = other["App-Attest-Client-Data"]
        forged = phone.ask("POST", "/v1/lenient/a", list(proof.items()), b"y")
        self.check_rejected(forged, "signature_invalid")
        self.assertEqual(sorted(policy.json), sorted(forged.json))
        for name in ("type", "title", "status", "code"):
            self.assertEqual(policy.json[name], forged.json[name])
        self.assertEqual(sorted(n for n, _ in policy.fields), sorted(n for n, _ in forged.fields))

    def test_unreadable_extensions_are_absent(self):
        device = Unreadable(self.root, app.APP_ID, "production", "ios27")
        phone = self.app(device).enrolled()
        self.assertEqual(phone.send("POST", "/v1/lenient/a", b"x").status, 200)
        self.assertEqual(phone.send("POST", "/v1/metric-absent/a", b"x").status, 200)
        answer = phone.send("POST", "/v1/category/a", b"x")
        self.check_rejected(answer, "extensions_unreadable")
        self.check_rejected(phone.send("POST", "/v1/version/a", b"x"), "extensions_unreadable")

    def test_the_assertion_goes_before_the_attestation(self):
        device = self.device("ios27")
        phone = self.app(device).enrolled()
        self.assertEqual(phone.send("POST", "/v1/category/a", b"x").status, 200)
        device.shape = "macos27"
        answer = phone.send("POST", "/v1/category/a", b"x")
        self.check_rejected(answer, "policy_category")
        device.shape = "ios17"
        self.assertEqual(
            phone.send("POST", "/v1/category/a", b"x").status, 200, "the attestation's stays")

    def test_a_monitored_route_counts_and_forwards(self):
        phone = self.app(self.device("ios27")).enrolled()
        answer = phone.send("POST", "/v1/watched/a", b"x")
        self.assertEqual(self.check_upstream(answer).get("App-Attest-Verdict"), "monitored")
        self.check_reason(answer, "policy_category")


def shares(settings):
    """Routes with shares behind a trusted proxy that names accounts and addresses."""
    settings.account = "header X-Account-Id"
    settings.listener.append(f"trusted_proxies {TRUSTED}/32")
    for basis in ("key_id", "account", "address"):
        for otherwise in ("monitor", "off"):
            settings.routes[f"* /v1/{basis}-{otherwise}/*"] = [
                f"mode enforce 50% by={basis} else={otherwise}"]


class Shares(case.Case):
    def setUp(self):
        self.run_gate(shares)

    def phone(self, account="alice", device=None):
        return self.app(device, account=account, source=TRUSTED)

    def place(self, answer):
        """Whether the answer shows that the request, which lacks a good proof, was inside; the
        verdict otherwise."""
        if answer.status == 200:
            request = self.service.wait(1)[-1]
            verdict = request.get("App-Attest-Verdict")
            self.service.reset()
            return verdict
        self.check_nothing_upstream()
        return "inside"

    def by_address(self, address, otherwise="off"):
        fields = [("X-Forwarded-For", address), ("X-Account-Id", "alice")]
        return self.place(
            self.ask("POST", f"/v1/address-{otherwise}/a", fields, b"x", source=TRUSTED))

    def restart(self, share):
        self.gate.kill()
        for name, lines in self.gate.settings.routes.items():
            self.gate.settings.routes[name] = [
                line.replace("50%", share) for line in lines]
        self.gate.start()

    def test_addresses_keep_their_place_over_a_restart_and_as_the_share_grows(self):
        addresses = [f"198.{a}.{b}.1" for a in range(51, 53) for b in range(40)]
        first = [self.by_address(address) for address in addresses]
        self.assertEqual(set(first), {"inside", "off"})
        self.assertIn(first.count("inside"), range(20, 61))
        self.assertEqual(
            [{"off": "monitored"}.get(p, p) for p in first],
            [self.by_address(address, "monitor") for address in addresses])
        self.restart("50%")
        self.assertEqual(first, [self.by_address(address) for address in addresses])
        self.restart("75%")
        raised = [self.by_address(address) for address in addresses]
        for before, after in zip(first, raised):
            self.assertFalse(before == "inside" and after != "inside")
        self.assertGreater(raised.count("inside"), first.count("inside"))

    def test_addresses_of_one_network_have_one_place(self):
        # What one client can easily choose from: a /24, and a /56 of IPv6.
        for net in range(8):
            places = {self.by_address(f"2001:db8:0:{net << 8 | host:x}::1")
                      for host in range(0, 256, 32)}
            self.assertEqual(len(places), 1)
            places = {self.by_address(f"198.51.{net}.{host}") for host in range(0, 256, 32)}
            self.assertEqual(len(places), 1)

    def test_a_request_without_address_proof_or_account_is_inside(self):
        for basis in ("key_id", "account"):
            for otherwise in ("monitor", "off"):
                target = f"/v1/{basis}-{otherwise}/a"
                answer = self.ask("POST", target, body=b"x", source=TRUSTED)
                self.check_problem(answer, "account_required")
                answer = self.ask("POST", target, [("X-Account-Id", "alice")], b"x")
                self.check_problem(answer, "account_required")
        for number in range(20):
            for otherwise in ("monitor", "off"):
                answer = self.ask("POST", f"/v1/key_id-{otherwise}/a",
                                  [("X-Account-Id", f"alice{number}")], b"x", source=TRUSTED)
                self.check_problem(answer, "proof_required")
        self.check_nothing_upstream()

    def test_t19_made_up_and_foreign_keys_are_inside(self):
        alice, bob = self.phone().enrolled(), self.phone("bob")
        fake = self.phone()
        for number in range(20):
            for otherwise in ("monitor", "off"):
                target = f"/v1/key_id-{otherwise}/a"
                answer = self.phone(device=self.device()).send("POST", target, b"x")
                self.check_problem(answer, "enrollment_required")
                fields = [("App-Attest-Key-Id", app.b64(os.urandom(32)))]
                self.check_problem(fake.ask("POST", target, fields, b"x"), "bad_request")
        keys = [alice] + [self.phone(device=self.device()).enrolled() for _ in range(9)]
        for phone in keys:
            bob.device = phone.device
            answer = bob.send("POST", "/v1/key_id-off/a", b"x")
            self.check_problem(answer, "enrollment_required")
        self.check_nothing_upstream()

    def test_an_enrolled_key_of_the_account_counts_until_it_is_revoked(self):
        phones = [self.phone(f"user{number}").enrolled() for number in range(12)]
        places = {}
        for phone in phones:
            fields = [("App-Attest-Key-Id", phone.key_id)]
            off = self.place(phone.ask("POST", "/v1/key_id-off/a", fields, b"x"))
            watched = self.place(phone.ask("POST", "/v1/key_id-monitor/a", fields, b"x"))
            self.assertIn((off, watched), {("inside", "inside"), ("off", "monitored")})
            places[off] = phone
        self.assertEqual(set(places), {"inside", "off"}, "twelve keys, all on one side")
        outside, inside = places["off"], places["inside"]
        for otherwise in ("monitor", "off"):
            for phone in (outside, inside):
                answer = phone.send("POST", f"/v1/key_id-{otherwise}/a", b"x")
                request = self.check_upstream(answer)
                is_off = phone is outside and otherwise == "off"
                self.assertEqual(
                    request.get("App-Attest-Verdict"), "off" if is_off else "verified")
                self.assertEqual(
                    bool(answer.get("App-Attest-Next-Challenge")), phone is inside)
                self.service.reset()
        doubled = [("App-Attest-Key-Id", outside.key_id)] * 2
        answer = outside.ask("POST", "/v1/key_id-off/a", doubled, b"x")
        self.check_problem(answer, "bad_request")
        self.assertEqual(outside.call("keys/revoke", {"keyID": outside.key_id}).status, 204)
        answer = outside.send("POST", "/v1/key_id-off/a", b"x")
        self.check_problem(answer, "enrollment_required")
        self.check_nothing_upstream()

    def test_accounts_have_a_place(self):
        places = []
        for number in range(40):
            phone = self.phone(f"user{number}")
            off = self.place(phone.ask("POST", "/v1/account-off/a", body=b"x"))
            watched = self.place(phone.ask("POST", "/v1/account-monitor/a", body=b"x"))
            self.assertIn((off, watched), {("inside", "inside"), ("off", "monitored")})
            places.append(off)
        self.assertEqual(set(places), {"inside", "off"})

    def test_outside_bodies_stream_as_of_the_other_mode(self):
        address = next(f"198.51.{n}.1" for n in range(99)
                       if self.by_address(f"198.51.{n}.1") == "off")
        fields = [("X-Forwarded-For", address), ("X-Account-Id", "alice"),
                  ("Early-Data", "1")]
        for otherwise, verdict in (("off", "off"), ("monitor", "monitored")):
            body = bytes(2 << 20)
            target = f"/v1/address-{otherwise}/a"
            answer = self.ask("POST", target, fields, body, source=TRUSTED, chunked=True)
            request = self.check_upstream(answer)
            self.assertEqual(request.get("App-Attest-Verdict"), verdict)
            self.assertEqual(request.body, body)
            self.service.reset()
        inside = next(f"198.51.{n}.1" for n in range(99)
                      if self.by_address(f"198.51.{n}.1") == "inside")
        fields[0] = ("X-Forwarded-For", inside)
        self.check_problem(
            self.ask("POST", "/v1/address-off/a", fields, b"x", source=TRUSTED), "too_early")

    def test_other_methods_and_odd_paths_are_refused_as_on_an_enforced_route(self):
        for otherwise in ("monitor", "off"):
            answer = self.ask("POST", f"/v1//address-{otherwise}/a", body=b"x")
            self.check_problem(answer, "path_ambiguous")
            answer = self.ask("POST", f"/V1/key_id-{otherwise}/a/", source=TRUSTED)
            self.check_problem(answer, "account_required")


class Fallback(case.SharedGate):
    UNSUPPORTED = ("App-Attest-Unsupported", "?1")

    @classmethod
    def configure(cls, settings):
        settings.routes["* /v1/open/*"] = ["fallback allow_unverified", "body max=64k memory=4k"]
        settings.routes["* /v1/watched-open/*"] = [
            "mode monitor", "fallback allow_unverified", "body max=64k memory=4k"]

    def test_who_says_it_cannot_attest_passes_unverified(self):
        answer = self.ask("POST", "/v1/open/a", [self.UNSUPPORTED], b"x" * 9000)
        request = self.check_upstream(answer)
        self.assertEqual(request.get("App-Attest-Verdict"), "unverified")
        self.assertEqual(request.body, b"x" * 9000)
        self.assertEqual(request.get("Content-Length"), "9000")
        for name in ("Verified-Key", "Counter", "Risk", "Unsupported"):
            self.assertEqual(request.all(f"App-Attest-{name}"), [])
        self.assertEqual(answer.all("App-Attest-Next-Challenge"), [])
        entry = self.gate.logged(answer)
        self.assertEqual(entry["verdict"], "unverified")
        self.assertNotIn("reason", entry)

    def test_who_says_nothing_or_no_does_not(self):
        for fields in ([], [("App-Attest-Unsupported", "?0")],
                       [("App-Attest-Device-Token", "AA==")]):
            self.check_problem(self.ask("POST", "/v1/open/a", fields, b"x"), "proof_required")
        for value in ("1", "?2", "true", "?1;a"):
            answer = self.ask("POST", "/v1/open/a", [("App-Attest-Unsupported", value)], b"x")
            self.check_problem(answer, "bad_request")
        self.check_problem(
            self.ask("POST", "/v1/open/a", [self.UNSUPPORTED, self.UNSUPPORTED], b"x"),
            "bad_request")

    def test_a_proof_decides(self):
        phone = self.app().enrolled()
        answer = phone.send("POST", "/v1/open/a", b"x", fields=[self.UNSUPPORTED])
        self.assertEqual(self.check_upstream(answer).get("App-Attest-Verdict"), "verified")
        self.service.reset()
        stranger = self.app()
        answer = stranger.send("POST", "/v1/open/a", b"x", fields=[self.UNSUPPORTED])
        self.check_problem(answer, "enrollment_required")
        part = [("App-Attest-Key-Id", phone.key_id), self.UNSUPPORTED]
        self.check_problem(self.ask("POST", "/v1/open/a", part, b"x"), "bad_request")
        self.check_nothing_upstream()

    def test_deny_is_the_default_and_unlike_a_missing_proof(self):
        answer = self.ask("POST", "/v1/data/a", [self.UNSUPPORTED], b"x")
        self.check_problem(answer, "unsupported")
        self.check_reason(answer, "unsupported")
        self.check_nothing_upstream()

    def test_the_body_is_complete_before_anything_is_forwarded(self):
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message(
                "POST", "/v1/open/a", [self.UNSUPPORTED, ("Content-Length", "10")]))
            connection.send(b"12345")
            self.assertTrue(connection.is_silent())
            self.check_nothing_upstream()
            connection.send(b"67890")
            self.assertEqual(connection.response().status, 200)
        self.assertEqual(self.service.wait(1)[0].body, b"1234567890")

    def test_a_body_over_the_most_is_too_large(self):
        body = bytes(64 * 1024 + 1)
        for chunked in (False, True):
            answer = self.ask("POST", "/v1/open/a", [self.UNSUPPORTED], body, chunked=chunked)
            self.check_problem(answer, "too_large", 413)
        self.check_nothing_upstream()

    def test_a_monitored_route_says_what_it_would_have_been(self):
        for size in (1, 100_000):
            answer = self.ask("POST", "/v1/watched-open/a", [self.UNSUPPORTED], bytes(size))
            request = self.check_upstream(answer)
            self.assertEqual(request.get("App-Attest-Verdict"), "unverified")
            self.assertEqual(len(request.body), size)
            self.service.reset()
