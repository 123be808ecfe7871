"""Whose a key is: accounts, apps and environments apart, blocked and retired, and answers that tell
none of it (protocol.md §2, §4, §5)."""

import os
import statistics
import time

import app
import case
import store_log
import wire

TRUSTED = "127.0.0.2"
DEV_HOST, BANK_HOST = "dev.example.test", "bank.example.test"
BANK_ID = "ABCDE12345.com.example.bank"
MONTH = 30 * 86400


def with_accounts(settings):
    settings.account = "header X-Account-Id"
    settings.listener.append(f"trusted_proxies {TRUSTED}/32")


def told(answer):
    """What an answer tells, without what is new in every one."""
    fields = [(n, v) for n, v in answer.fields if n not in ("Date", "X-Request-Id")]
    members = dict(answer.json) if answer.body else {}
    members.pop("requestId", None)
    return answer.status, fields, members


class Worlds(case.SharedGate):
    """Three apps in one process: production, the same app's development builds, another app."""

    @classmethod
    def configure(cls, settings):
        def host(name, app_name):
            return [f"host {name} {{", "    listener main", f"    app {app_name}",
                    "    upstream service", "    unmatched off", "    enroll /v1/app-attest",
                    "    route * /v1/data/* {", "        mode enforce", "    }", "}"]
        settings.extra += [
            "app shop-dev {", f"    app_id {app.APP_ID}", "    environment development",
            f"    root file:{settings.root}", "}",
            "app bank {", f"    app_id {BANK_ID}", "    environment production",
            f"    root file:{settings.root}", "}",
            *host(DEV_HOST, "shop-dev"), *host(BANK_HOST, "bank"),
        ]

    def worlds(self):
        """An enrolled app of each world, by its host."""
        return {
            app.HOST: self.app().enrolled(),
            DEV_HOST: self.app(self.device(environment="development"), host=DEV_HOST).enrolled(),
            BANK_HOST: self.app(self.device(app_id=BANK_ID), host=BANK_HOST).enrolled(),
        }

    def test_each_world_takes_its_own(self):
        shown = {app.HOST: "shop;env=production", DEV_HOST: "shop-dev;env=development",
                 BANK_HOST: "bank;env=production"}
        for host, phone in self.worlds().items():
            request = self.check_upstream(phone.send("GET", "/v1/data/a"))
            self.assertEqual(request.get("App-Attest-App"), shown[host])
            self.service.reset()

    def test_a_key_of_another_world_is_as_good_as_unknown(self):
        worlds = self.worlds()
        for host in worlds:
            stranger = self.app(self.device(), host=host).send("GET", "/v1/data/a")
            self.check_problem(stranger, "enrollment_required")
            self.check_reason(stranger, "key_unknown")
            for other, phone in worlds.items():
                if other == host:
                    continue
                there = self.app(phone.device, host=host)
                answer = there.send("GET", "/v1/data/a")
                self.check_problem(answer, "enrollment_required")
                self.check_reason(answer, "key_foreign")
                self.assertEqual(told(answer), told(stranger))
                status = there.call("keys/status", {"keyID": phone.key_id})
                self.assertEqual(status.json, {"registered": False})
        self.check_nothing_upstream()

    def test_no_key_is_enrolled_in_another_world(self):
        for host, device, reason in (
                (app.HOST, self.device(environment="development"), "aaguid_mismatch"),
                (BANK_HOST, self.device(app_id=BANK_ID, environment="development"),
                 "aaguid_mismatch"),
                (DEV_HOST, self.device(), "aaguid_mismatch"),
                (app.HOST, self.device(app_id=BANK_ID), "rp_id_mismatch"),
                (BANK_HOST, self.device(), "rp_id_mismatch")):
            answer = self.app(device, host=host).enrol()
            self.check_problem(answer, "rejected")
            self.check_reason(answer, reason)

    def test_no_challenge_is_good_in_another_world(self):
        worlds = self.worlds()
        for host, phone in worlds.items():
            for other, stranger in worlds.items():
                if other != host:
                    answer = phone.send("GET", "/v1/data/a", challenge=stranger.challenge())
                    self.check_problem(answer, "challenge_required")
                    fresh = self.app(self.device(), host=host)
                    answer = fresh.enrol(stranger.challenge("attestation"))
                    self.check_problem(answer, "challenge_required")
        self.check_nothing_upstream()


class Answers(case.SharedGate):
    """A key of A that B sends, one that nobody has, and a revoked one: the same, in time too."""

    @classmethod
    def configure(cls, settings):
        with_accounts(settings)

    def phone(self, account, device=None):
        return self.app(device, account=account, source=TRUSTED)

    def cases(self):
        """For B: an app for each kind of key that is no good."""
        foreign = self.phone("alice").enrolled()
        revoked = self.phone("bob").enrolled()
        self.assertEqual(revoked.call("keys/revoke", {"keyID": revoked.key_id}).status, 204)
        return {"key_foreign": self.phone("bob", foreign.device),
                "key_revoked": revoked, "key_unknown": self.phone("bob")}

    def calls(self):
        """By what is asked: by reason, what to send."""
        cases = self.cases()
        challenge = self.phone("bob").challenge()
        return {
            "request": {
                reason: ("POST", "/v1/data/a", phone.prove("POST", "/v1/data/a", b"x", challenge),
                         b"x") for reason, phone in cases.items()},
            "keys/status": {
                reason: ("POST", "/v1/app-attest/keys/status", [],
                         f'{{"keyID":"{phone.key_id}"}}'.encode())
                for reason, phone in cases.items()},
        }

    def test_nobody_can_tell_them_apart(self):
        for name, calls in self.calls().items():
            answers = {}
            for reason, (method, target, fields, body) in calls.items():
                answer = self.ask(method, target, [("X-Account-Id", "bob"), *fields], body,
                                  source=TRUSTED)
                if name == "request":
                    self.check_problem(answer, "enrollment_required")
                    self.check_reason(answer, reason)
                else:
                    self.assertEqual(answer.json, {"registered": False})
                answers[reason] = told(answer)
            self.assertEqual(answers["key_foreign"], answers["key_unknown"], name)
            self.assertEqual(answers["key_revoked"], answers["key_unknown"], name)
        self.check_nothing_upstream()

    def test_enrolling_again_what_is_revoked_or_anothers_is_one_answer(self):
        cases = self.cases()
        answers = {}
        for reason in ("key_foreign", "key_revoked"):
            answer = cases[reason].enrol()
            self.check_problem(answer, "rejected")
            self.check_reason(answer, reason)
            answers[reason] = told(answer)
        self.assertEqual(answers["key_foreign"], answers["key_revoked"])

    def test_the_time_of_an_answer_tells_nothing_either(self):
        """Medians of interleaved samples; what they are is printed, the bound is a generous one."""
        rounds = int(os.environ.get("GATE_TIMING_ROUNDS", "150"))
        for name, calls in self.calls().items():
            messages = {
                reason: wire.message(method, target, [("X-Account-Id", "bob"), *fields], body)
                for reason, (method, target, fields, body) in calls.items()}
            times = {reason: [] for reason in messages}
            with wire.Connection(self.gate.address, source=TRUSTED) as connection:
                for _ in range(rounds):
                    for reason, message in messages.items():
                        start = time.perf_counter()
                        connection.send(message)
                        connection.response()
                        times[reason].append(time.perf_counter() - start)
            medians = {r: statistics.median(t) * 1e6 for r, t in times.items()}
            spread = {r: statistics.quantiles(t, n=4) for r, t in times.items()}
            print(f"     {name}: " + ", ".join(
                f"{r} {medians[r]:.1f} us (quartiles {q[0] * 1e6:.1f} to {q[2] * 1e6:.1f})"
                for r, q in spread.items()), flush=True)
            self.assertLess(max(medians.values()), 2 * min(medians.values()), medians)


class Revoked(case.Case):
    def test_a_revoked_key_stays_refused_over_a_restart(self):
        self.run_gate(with_accounts)
        phone = self.app(account="alice", source=TRUSTED).enrolled()
        self.assertEqual(phone.send("GET", "/v1/data/a").status, 200)
        self.assertEqual(phone.call("keys/revoke", {"keyID": phone.key_id}).status, 204)
        for _ in range(2):
            answer = phone.enrol()
            self.check_problem(answer, "rejected")
            self.check_reason(answer, "key_revoked")
            answer = phone.send("GET", "/v1/data/a")
            self.check_problem(answer, "enrollment_required")
            self.check_reason(answer, "key_revoked")
            status = phone.call("keys/status", {"keyID": phone.key_id})
            self.assertEqual(status.json, {"registered": False})
            self.gate.kill()
            self.gate.start()
        self.assertEqual(len(self.service.requests), 1)


class Retired(case.Case):
    def start(self, *records):
        def change(settings):
            with_accounts(settings)
            settings.app.append("keys_per_account 2")
        self.run_gate(change)
        self.old = [self.device(), self.device()]
        self.gate.stop()
        now = time.time()
        store_log.append(
            self.gate.settings.store,
            store_log.enrolled(self.old[0], "alice", now - 2 * MONTH),
            store_log.enrolled(self.old[1], "alice", now - MONTH - 3600))
        self.gate.start()

    def phone(self, device=None, account="alice"):
        return self.app(device, account=account, source=TRUSTED)

    def test_the_key_unused_for_longest_makes_room(self):
        self.start()
        first, second = (self.phone(device) for device in self.old)
        self.assertEqual(first.send("GET", "/v1/data/a").status, 200)
        new = self.phone()
        self.assertEqual(new.enrol().status, 201)
        for _ in range(2):
            answer = second.send("GET", "/v1/data/a")
            self.check_problem(answer, "enrollment_required")
            self.check_reason(answer, "key_revoked")
            answer = second.enrol()
            self.check_problem(answer, "rejected")
            self.check_reason(answer, "key_revoked")
            for phone in (first, new):
                self.assertEqual(phone.send("GET", "/v1/data/a").status, 200)
            self.gate.kill()
            self.gate.start()
        answer = self.phone().enrol()
        self.check_problem(answer, "rejected")
        self.check_reason(answer, "key_limit")
        self.assertEqual(self.phone(account="bob").enrol().status, 201)


class Blocked(case.Case):
    def test_a_blocked_account_is_rejected_everywhere(self):
        def change(settings):
            with_accounts(settings)
            settings.routes["* /v1/open/*"] = ["fallback allow_unverified"]
            settings.routes["* /v1/part/*"] = ["mode enforce 0% by=account else=off"]
        self.run_gate(change)
        phone = self.app(account="mallory", source=TRUSTED).enrolled()
        challenge, other = phone.challenge(), phone.challenge("attestation")
        self.gate.stop()
        store_log.append(self.gate.settings.store, store_log.blocked("mallory", time.time()))
        self.gate.start()
        attempts = {
            "request": phone.send("GET", "/v1/data/a", challenge=challenge),
            "fallback": phone.ask("GET", "/v1/open/a", [("App-Attest-Unsupported", "?1")]),
            "no proof": phone.ask("GET", "/v1/data/a"),
            "enrolment": self.app(account="mallory", source=TRUSTED).enrol(other),
            "status": phone.call("keys/status", {"keyID": phone.key_id}),
            "revocation": phone.call("keys/revoke", {"keyID": phone.key_id}),
            "challenge": phone.call("challenges", {"purpose": "request"}),
            "value": phone.ask("GET", "/v1/app-attest/challenge"),
        }
        for name, answer in attempts.items():
            with self.subTest(attempt=name):
                self.check_problem(answer, "rejected")
                self.check_reason(answer, "account_blocked")
                self.assertEqual(told(answer), told(attempts["request"]))
        self.check_nothing_upstream()

        answer = phone.ask("GET", "/v1/watched/a")
        self.assertEqual(self.check_upstream(answer).get("App-Attest-Verdict"), "monitored")
        self.check_reason(answer, "account_blocked")
        self.service.reset()
        answer = phone.ask("GET", "/v1/part/a")
        self.assertEqual(self.check_upstream(answer).get("App-Attest-Verdict"), "off")
        alice = self.app(account="alice", source=TRUSTED).enrolled()
        self.assertEqual(alice.send("GET", "/v1/data/a").status, 200)
