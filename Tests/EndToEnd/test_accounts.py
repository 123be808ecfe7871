"""Sources of accounts (protocol.md §7): jwt, its key sets, client_cert, subrequest."""


import json
import os
import signal
import statistics
import time
import unittest

import app
import case
import gate as gates
import issuer
import pki
import secure
import upstream
import wire
import wire2

WANTED = "issuer https://id.example\n audience shop"


def jwt(*lines):
    return "jwt {\n " + "\n ".join(lines) + "\n}"


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


class Phones:
    """Apps that show a token."""

    def phone(self, token, device=None, field="Authorization", scheme="Bearer ", **options):
        return self.app(device, account=f"{scheme}{token}", account_field=field, **options)


class Tokens(Phones, case.SharedGate):
    """`account jwt` with a set of keys in a file."""

    @classmethod
    def configure(cls, settings):
        cls.keys = {name: issuer.Key(name, f"{name}-1")
                    for name in ("RS256", "PS256", "ES256", "EdDSA")}
        path = write(
            os.path.join(settings.directory, "keys.json"), issuer.key_set(*cls.keys.values()))
        settings.account = jwt(f"jwks file:{path}", WANTED)

    def test_a_token_of_each_algorithm_names_the_account(self):
        for count, (name, key) in enumerate(self.keys.items(), 1):
            with self.subTest(name):
                token = key.token(f"user {count}")
                phone = self.phone(token).enrolled()
                answer = phone.send("POST", "/v1/data/a", b"x")
                request = self.check_upstream(answer, count)
                self.assertEqual(request.all("App-Attest-Account"), [f"user%20{count}"])
                # The credential passes unchanged.
                self.assertEqual(request.all("Authorization"), [f"Bearer {token}"])
                self.assertTrue(self.gate.logged(answer)["account"])

    def test_the_scheme_is_bearer_in_any_case(self):
        token = self.keys["ES256"].token()
        for scheme, code in (("bearer ", 200), ("BEARER  ", 200), ("Basic ", 401), ("", 401),
                             ("Bearer", 401), ("Bearer\t", 401)):
            with self.subTest(scheme):
                phone = self.phone(token, scheme=scheme)
                answer = phone.call("challenges", {"purpose": "request"})
                self.assertEqual(answer.status, code, answer)

    def refused(self):
        key, other = self.keys["RS256"], issuer.Key("RS256", "RS256-1")
        ec = self.keys["ES256"]
        now = int(time.time())
        good = ec.token()
        head, claims, signature = good.split(".")
        none = issuer.unpadded(b'{"alg":"none"}')
        # What a second base64 text of the same bytes would be: unused bits set.
        last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        spelled = signature[:-1] + last[last.index(signature[-1]) ^ 1]
        yield from {
            "another key": other.token(), "HS256 by the PEM": key.with_secret(key.pem),
            "HS256 by the modulus": key.with_secret(key.jwk["n"]),
            "HS256 by the set's entry": key.with_secret(json.dumps(key.jwk)),
            "none": f"{none}.{claims}.", "none signed": f"{none}.{claims}.{signature}",
            "unsigned": f"{head}.{claims}.", "two parts": f"{head}.{claims}",
            "four parts": good + ".AA", "padded": good + "==",
            "spelled": f"{head}.{claims}.{spelled}",
            "other claims": f"{head}.{ec.token('bob').split('.')[1]}.{signature}",
            "RS256 in the head of ES256": ec.token(header={"alg": "RS256"}),
            "PS256 by the RS256 key": key.token(
                header={"alg": "PS256"},
                sign=lambda data: key.private.sign(data, issuer.PSS, issuer.SHA256)),
            "unknown kid": ec.token(header={"kid": "x"}), "kid of another": ec.token(
                header={"kid": "RS256-1"}),
            "crit": ec.token(header={"crit": ["exp"]}), "expired": ec.token(exp=now - 61),
            "no exp": ec.token(exp=None), "exp as text": ec.token(exp=str(now + 600)),
            "not yet": ec.token(nbf=now + 120), "made ahead": ec.token(iat=now + 120),
            "issuer": ec.token(iss="https://id.example/"), "no issuer": ec.token(iss=None),
            "audience": ec.token(aud=["other"]), "no audience": ec.token(aud=None),
            "no sub": ec.token(sub=None), "empty sub": ec.token(sub=""),
            "control": ec.token(sub="a\u0000b"), "long sub": ec.token(sub="a" * 257),
            "too long": ec.token(x="a" * 8192), "garbage": "a.b.c", "empty": "",
        }.items()

    def test_a_token_that_does_not_hold_is_no_account_and_nothing_goes_upstream(self):
        for name, token in self.refused():
            with self.subTest(name):
                phone = self.phone(token)
                for answer in (phone.call("challenges", {"purpose": "request"}),
                               phone.ask("GET", "/v1/data/a")):
                    self.check_problem(answer, "account_required")
                    self.check_reason(answer, "account_absent")
        self.check_nothing_upstream()

    def test_leeway_is_a_minute(self):
        key, now = self.keys["EdDSA"], int(time.time())
        for claims in ({"exp": now - 30}, {"nbf": now + 30}, {"iat": now + 30},
                       {"aud": ["other", "shop"]}, {"exp": now + 10.5}):
            phone = self.phone(key.token(**claims))
            self.assertEqual(phone.call("challenges", {"purpose": "request"}).status, 200)

    def test_two_credentials_are_a_bad_request(self):
        token = self.keys["ES256"].token()
        fields = [("Authorization", f"Bearer {token}")] * 2
        self.check_problem(self.ask("GET", "/v1/data/a", fields), "bad_request")
        fields[1] = ("authorization", "Basic eDp5")
        self.check_problem(self.ask("GET", "/v1/data/a", fields), "bad_request")
        self.check_nothing_upstream()

    def test_a_key_and_a_challenge_belong_to_one_account(self):
        key = self.keys["ES256"]
        alice = self.phone(key.token("alice")).enrolled()
        bob = self.phone(key.token("bob"), device=alice.device)
        self.check_problem(bob.send("POST", "/v1/data/a", b"x"), "enrollment_required")
        challenge = alice.challenge()
        answer = self.phone(key.token("bob")).send(
            "POST", "/v1/data/a", b"x", challenge=challenge)
        self.check_problem(answer, "challenge_required")
        # Another token of the same account is the same account.
        again = self.phone(key.token("alice", jti="2"), device=alice.device)
        self.assertEqual(again.send("POST", "/v1/data/a", b"x").status, 200)

    def test_an_off_route_asks_for_nothing_and_a_monitored_one_counts(self):
        answer = self.ask("GET", "/public", [("Authorization", "Bearer nonsense")])
        request = self.check_upstream(answer)
        self.assertEqual(request.all("App-Attest-Account"), [])
        self.assertEqual(request.all("Authorization"), ["Bearer nonsense"])
        answer = self.ask("GET", "/v1/watched/a", [("Authorization", "Bearer nonsense")])
        request = self.check_upstream(answer, 2)
        self.assertEqual(request.get("App-Attest-Verdict"), "monitored")
        self.check_reason(answer, "account_absent")
        self.check_problem(self.ask("GET", "/closed/a"), "not_found")

    def test_connection_may_not_name_the_credential(self):
        token = self.keys["ES256"].token()
        answer = self.ask("GET", "/v1/data/a", [
            ("Authorization", f"Bearer {token}"), ("Connection", "authorization")])
        self.check_problem(answer, "bad_request")

    def test_a_spoofed_account_field_goes_nowhere(self):
        phone = self.phone(self.keys["ES256"].token("carol")).enrolled()
        answer = phone.send("POST", "/v1/data/a", b"x", fields=[
            ("App-Attest-Account", "root"), ("app_attest_account", "root")])
        request = self.check_upstream(answer)
        self.assertEqual(request.all("App-Attest-Account"), ["carol"])

    def test_revoking_by_the_account_needs_no_proof(self):
        phone = self.phone(self.keys["ES256"].token("dave")).enrolled()
        other = self.phone(self.keys["ES256"].token("erin"))
        other.call("keys/revoke", {"keyID": phone.key_id})
        self.assertTrue(phone.call("keys/status", {"keyID": phone.key_id}).json["registered"])
        self.assertEqual(phone.call("keys/revoke", {"keyID": phone.key_id}).status, 204)
        self.check_problem(phone.send("POST", "/v1/data/a", b"x"), "enrollment_required")


class Uses(Phones, case.Case):
    """What goes by accounts goes by those of tokens as well."""

    def serve(self, change=lambda settings: None):
        self.key = issuer.Key("EdDSA", "k1")

        def all_changes(settings):
            path = write(os.path.join(settings.directory, "keys.json"), issuer.key_set(self.key))
            settings.account = jwt(f"jwks file:{path}", WANTED)
            change(settings)

        self.run_gate(all_changes)

    def test_rates_and_keys_per_account(self):
        def change(settings):
            settings.rates["challenges"] = "per_account=3/1h"

        self.serve(change)
        for name in ("alice", "bob"):
            codes = [
                self.phone(self.key.token(name, jti=str(number))).call(
                    "challenges", {"purpose": "request"}).status for number in range(4)]
            self.assertEqual(codes, [200, 200, 200, 429])

    def test_a_share_by_account(self):
        self.serve(lambda settings: settings.routes.update(
            {"GET /part": ["mode enforce 50% by=account else=off"]}))
        tokens = {name: self.key.token(name) for name in map(str, range(40))}
        first = {name: self.phone(token).ask("GET", "/part").status
                 for name, token in tokens.items()}
        self.assertEqual(set(first.values()), {200, 401})
        again = {name: self.phone(self.key.token(name, jti="2")).ask("GET", "/part").status
                 for name in tokens}
        self.assertEqual(first, again)
        self.check_problem(self.ask("GET", "/part"), "account_required")

    def test_the_key_is_found_by_the_account(self):
        self.serve(lambda settings: settings.host.append("proof {\n key_id account\n}"))
        phones = [self.phone(self.key.token("alice")).enrolled() for _ in range(2)]
        phones.append(self.phone(self.key.token("bob")).enrolled())
        for count, phone in enumerate(phones, 1):
            challenge = phone.challenge()
            proof = phone.prove("POST", "/v1/data/a", b"x", challenge)[1:]
            answer = phone.ask("POST", "/v1/data/a", proof, b"x")
            request = self.check_upstream(answer, count)
            self.assertEqual(request.get("App-Attest-Verified-Key"), phone.key_id)
        # Another account's keys are not tried.
        stranger = self.phone(self.key.token("bob"), device=phones[0].device)
        proof = stranger.prove("POST", "/v1/data/a", b"x", stranger.challenge())[1:]
        answer = stranger.ask("POST", "/v1/data/a", proof, b"x")
        self.assertIn(answer.code, ("enrollment_required", "rejected", "challenge_required"))

    def test_the_simulated_device_shows_a_token(self):
        def change(settings):
            self.state = os.path.join(settings.directory, "device")
            done = gates.command(
                "device", "new", "--state", self.state, "--app-id", gates.APP_ID)
            self.assertEqual(done.returncode, 0, done.stderr)
            settings.root = f"{self.state}.root.pem"

        self.serve(change)
        where = f"http://{gates.HOST}/v1/app-attest"
        words = ["--state", self.state, "--connect", "%s:%d" % self.gate.address]
        done = gates.command("device", "enrol", where, *words, "-H", "Authorization: Bearer x.y.z")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("account_required", done.stdout + done.stderr)
        header = f"Authorization: Bearer {self.key.token('alice')}"
        done = gates.command("device", "enrol", where, *words, "-H", header)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = gates.command(
            "device", "request", "POST", f"http://{gates.HOST}/v1/data/a", "--data", "hello",
            *words, "-H", header)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.service.wait(1)[0].get("App-Attest-Account"), "alice")


class OneKey(Phones, case.Case):
    """One key in PEM, a field of its own, another claim."""

    def setUp(self):
        self.key = issuer.Key("RS256", None)

        def change(settings):
            path = write(os.path.join(settings.directory, "key.pem"), self.key.pem)
            settings.account = jwt(
                f"key file:{path}", WANTED, "header X-Session-Token", "claim uid",
                "algorithms RS256", "leeway 1s")

        self.run_gate(change)

    def test_bare_or_after_bearer_and_a_number_is_an_account(self):
        for scheme, uid, shown in (("", "zoe", "zoe"), ("Bearer ", 42, "42")):
            token = self.key.token(uid=uid, header={"kid": "anything"})
            phone = self.phone(token, field="X-Session-Token", scheme=scheme).enrolled()
            self.service.reset()
            request = self.check_upstream(phone.send("POST", "/v1/data/a", b"x"))
            self.assertEqual(request.get("App-Attest-Account"), shown)
            self.assertEqual(request.get("X-Session-Token"), f"{scheme}{token}")

    def test_confused_algorithms(self):
        for token in (self.key.with_secret(self.key.pem),
                      self.key.with_secret(self.key.pem.strip()),
                      issuer.Key("ES256", None).token(uid="zoe"),
                      issuer.Key("PS256", None).token(uid="zoe")):
            phone = self.phone(token, field="X-Session-Token", scheme="")
            self.check_problem(
                phone.call("challenges", {"purpose": "request"}), "account_required")
        good = self.key.token(uid="zoe")
        answer = self.ask("GET", "/v1/data/a", [
            ("X-Session-Token", good), ("x.session.token", good)])
        self.check_problem(answer, "bad_request")
        answer = self.ask("GET", "/v1/data/a", [
            ("X-Session-Token", good), ("Connection", "x-session-token")])
        self.check_problem(answer, "bad_request")


class Fetched(Phones, case.Case):
    """Key sets of a URL: what is wrong with it touches nobody who has keys."""

    def serve(self, refresh="1s", running=True, **options):
        authority = pki.Authority(self.temporary(), "keys")
        self.key = issuer.Key("ES256", "k1")
        self.server = issuer.Server(authority.issue("keys", "127.0.0.1"), self.key)
        self.addCleanup(self.server.stop)
        if not running:
            self.server.stop()

        def change(settings):
            settings.account = jwt(f"jwks {self.server.url} refresh={refresh}", WANTED)

        # Where OpenSSL looks for authorities.
        self.run_gate(change, environment={"SSL_CERT_FILE": authority.pem}, **options)

    def asks(self, key=None, **options):
        phone = self.phone((key or self.key).token(**options))
        return phone.call("challenges", {"purpose": "request"})

    def passes(self, key=None, within=wire.DEADLINE):
        """Whether a token by `key` is taken, now or soon."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            if self.asks(key).status == 200:
                return True
            gates.pass_time(0.1)
        return False

    def test_before_the_first_keys_come_again_later_and_then_pass(self):
        self.serve(running=False)
        answer = self.check_problem(self.asks(), "retry_later")
        self.check_reason(answer, "upstream")
        self.assertTrue(self.gate.err.wait(
            lambda line: "key set https://127.0.0.1" in line and "no keys yet" in line))
        self.assertNotIn("tenant", self.gate.err.text)
        # Whom nothing about keys concerns is served.
        self.assertEqual(self.ask("GET", "/public").status, 200)
        self.check_problem(self.ask("GET", "/v1/data/a"), "account_required")
        self.server.start()
        self.assertTrue(self.passes())
        self.assertTrue(self.gate.err.wait(lambda line: "fetched again" in line))

    def test_down_slow_broken_empty_the_last_good_keys_stay(self):
        self.serve()
        self.assertTrue(self.passes())
        phone = self.phone(self.key.token()).enrolled()
        for fault in (500, 302, "garbage", "empty", "huge", "slow"):
            with self.subTest(fault):
                self.server.fault = fault
                self.assertTrue(self.server.wait(self.server.asked + 1))
                for _ in range(3):
                    self.assertEqual(phone.send("POST", "/v1/data/a", b"x").status, 200)
        self.server.stop()
        with self.subTest("down"):
            for _ in range(3):
                self.assertEqual(phone.send("POST", "/v1/data/a", b"x").status, 200)
        with self.subTest("a reload that changes nothing here keeps them"):
            self.gate.signal(signal.SIGHUP)
            self.assertTrue(self.gate.err.wait(lambda line: "reloaded" in line))
            self.assertEqual(phone.send("POST", "/v1/data/a", b"x").status, 200)
        with self.subTest("a reload that asks for them more seldom keeps them too"):
            settings = self.gate.settings
            settings.account = settings.account.replace("refresh=1s", "refresh=7s")
            write(self.gate.conf, settings.text())
            seen = self.gate.err.text.count("reloaded")
            self.gate.signal(signal.SIGHUP)
            end = time.monotonic() + wire.DEADLINE
            while self.gate.err.text.count("reloaded") == seen and time.monotonic() < end:
                gates.pass_time(0.05)
            self.assertEqual(phone.send("POST", "/v1/data/a", b"x").status, 200)

    def test_a_slow_endpoint_slows_no_request(self):
        self.serve()
        self.assertTrue(self.passes())

        def median():
            with wire.Connection(self.gate.address) as connection:
                times = []
                phone = self.phone(self.key.token())
                for _ in range(100):
                    started = time.monotonic()
                    answer = phone.call(
                        "challenges", {"purpose": "request"}, connection=connection)
                    self.assertEqual(answer.status, 200)
                    times.append(time.monotonic() - started)
            return statistics.median(times)

        quick = median()
        self.server.fault = "slow"
        self.assertTrue(self.server.wait(self.server.asked + 1))
        slow = median()
        print(f"p50 {quick * 1000:.2f} ms, with a slow endpoint {slow * 1000:.2f} ms", flush=True)
        self.assertLess(slow, max(quick * 3, 0.02))

    def test_rotated_keys_are_found_by_the_next_fetch(self):
        self.serve()
        self.assertTrue(self.passes())
        new = issuer.Key("EdDSA", "k2")
        self.server.keys = (new, self.key)
        self.assertTrue(self.passes(new))
        self.assertTrue(self.passes())
        # The old one is withdrawn.
        self.server.keys = (new,)
        self.assertTrue(self.server.wait(self.server.asked + 2))
        self.check_problem(self.asks(), "account_required")

    def test_an_unknown_key_is_asked_for_at_once_but_seldom(self):
        self.serve(refresh="1h")
        self.assertTrue(self.passes())
        new = issuer.Key("ES256", "k2")
        self.server.keys = (new, self.key)
        # A fetch was a moment ago: not again yet, and nobody waits.
        self.check_problem(self.asks(new), "account_required")
        self.assertEqual(self.server.asked, 1)
        gates.pass_time(10.5)
        # The request itself waits for the fetch and passes.
        self.assertEqual(self.asks(new).status, 200)
        self.assertEqual(self.server.asked, 2)
        for _ in range(5):
            self.check_problem(self.asks(issuer.Key("ES256", "k9")), "account_required")
        self.assertEqual(self.server.asked, 2)

    def test_a_request_with_a_body_waits_whole(self):
        self.serve(refresh="1h")
        self.assertTrue(self.passes())
        phone = self.phone(self.key.token("alice")).enrolled()
        new = issuer.Key("ES256", "k2")
        self.server.keys = (new, self.key)
        gates.pass_time(10.5)
        again = self.phone(new.token("alice"), device=phone.device)
        body = os.urandom(100_000)
        challenge = phone.challenge()
        answer = again.send("POST", "/v1/data/a", body, challenge=challenge)
        self.assertEqual(self.check_upstream(answer).body, body)

    def test_another_authority_is_not_believed(self):
        self.serve(running=False)
        other = pki.Authority(self.temporary(), "others").issue("keys", "127.0.0.1")
        self.server.identity = other
        self.server.start()
        self.assertTrue(self.gate.err.wait(lambda line: "certificate" in line))
        self.check_problem(self.asks(), "retry_later")


class Certificates(case.Case):
    """`account client_cert`."""

    def serve(self, account, policy="require"):
        self.pki = pki.Authority(self.temporary(), "server")
        self.clients = pki.Authority(self.temporary(), "clients")
        api = self.pki.issue("api", gates.HOST)

        def change(settings):
            settings.account = f"client_cert {account}"
            settings.listener += [
                "tls {", f"    {api.line}", f"    client_ca {policy} file:{self.clients.pem}", "}"]

        self.run_gate(change)

    def phone(self, identity=None, device=None):
        tls = secure.context(self.pki, identity)
        return secure.App(self.gate.address, device or self.device(), tls)

    def test_the_subject_is_the_account(self):
        self.serve("subject")
        alice = self.clients.issue("alice, of \u00e9 + \"x\"", client=True)
        phone = self.phone(alice).enrolled()
        request = self.check_upstream(phone.send("POST", "/v1/data/a", b"x"))
        self.assertEqual(
            request.get("App-Attest-Account"),
            "CN=alice\\,%20of%20\\C3\\A9%20\\+%20\\\"x\\\"")
        bob = self.phone(self.clients.issue("bob", client=True), device=phone.device)
        self.check_problem(bob.send("POST", "/v1/data/a", b"x"), "enrollment_required")

    def test_the_first_alternative_name_is_the_account_with_its_type(self):
        self.serve("san", "optional")
        named = self.clients.issue("alice", "10.0.0.1", "alice.example", "b.example", client=True)
        phone = self.phone(named).enrolled()
        request = self.check_upstream(phone.send("POST", "/v1/data/a", b"x"))
        self.assertEqual(request.get("App-Attest-Account"), "DNS:alice.example")
        for identity in (None, self.clients.issue("nameless", client=True)):
            other = self.phone(identity)
            self.check_problem(
                other.call("challenges", {"purpose": "request"}), "account_required")
            self.check_problem(other.ask("GET", "/v1/data/a"), "account_required")
        # Off routes ask nobody.
        self.assertEqual(self.phone().ask("GET", "/public").status, 200)

    def test_a_resumed_session_keeps_its_account(self):
        self.serve("subject")
        tls = secure.context(self.pki, self.clients.issue("alice", client=True))
        first = secure.Connection(self.gate.address, tls)
        phone = secure.App(self.gate.address, self.device(), tls).enrolled(connection=first)
        second = secure.Connection(self.gate.address, tls, session=first.socket.session)
        self.assertTrue(second.socket.session_reused)
        answer = phone.send("POST", "/v1/data/a", b"x", connection=second)
        self.assertEqual(self.check_upstream(answer).get("App-Attest-Account"), "CN=alice")


class Subrequests(case.Case):
    """`account subrequest`: a service says who the client is."""

    def serve(self, cache=None, listener=()):
        self.accounts = {"Bearer a": "alice", "Bearer b": "bob"}
        self.identity = self.recorder(respond=self.tell)
        self.problem = None

        def change(settings):
            settings.listener += listener
            cached = f" cache={cache}" if cache else ""
            settings.account = f"subrequest identity /auth?from=gate X-User{cached}"
            settings.extra += [
                "upstream identity {", f"    server 127.0.0.1:{self.identity.port}",
                "    timeouts first_byte=1s", "}"]

        self.run_gate(change)

    def tell(self, request):
        if self.problem:
            return self.problem
        account = self.accounts.get(request.get("Authorization"))
        if account is None:
            return upstream.answer(status="401 Unauthorized")
        return upstream.answer(b"", fields=[f"X-User: {account}"])

    def phone(self, credential, device=None):
        return self.app(device, account=credential, account_field="Authorization")

    def asks(self, credential="Bearer a", fields=()):
        return self.phone(credential).call("challenges", {"purpose": "request"}, fields)

    def test_the_service_names_the_account(self):
        self.serve()
        phone = self.phone("Bearer a").enrolled()
        self.identity.reset()
        answer = phone.ask(
            "GET", "/v1/data/a?b=c", [("Cookie", "s=1"), ("X-Original-URI", "/public"),
            ("X-Original-Method", "OPTIONS"), ("X-Forwarded-For", "1.2.3.4"),
            ("Range", "bytes=0-1"), ("App-Attest-Account", "root"), ("X-User", "root")])
        self.check_problem(answer, "proof_required")
        asked = self.identity.wait(1)[0]
        self.assertEqual((asked.method, asked.target), ("GET", "/auth?from=gate"))
        self.assertEqual(asked.get("Host"), gates.HOST)
        self.assertEqual(asked.get("Authorization"), "Bearer a")
        self.assertEqual(asked.get("Cookie"), "s=1")
        self.assertEqual(asked.all("X-Original-URI"), ["/v1/data/a?b=c"])
        self.assertEqual(asked.all("X-Original-Method"), ["GET"])
        self.assertEqual(asked.all("X-Forwarded-For"), ["127.0.0.1"])
        for name in ("Range", "App-Attest-Account", "App-Attest-Verdict", "Content-Length",
                     "Content-Type"):
            self.assertEqual(asked.all(name), [], name)
        self.assertEqual(asked.get("X-Request-Id"), answer.get("X-Request-Id"))
        answer = phone.send("POST", "/v1/data/a", b"body")
        request = self.check_upstream(answer)
        self.assertEqual(request.get("App-Attest-Account"), "alice")
        self.assertEqual(request.get("Authorization"), "Bearer a")
        asked = self.identity.requests[-1]
        self.assertEqual(asked.body, b"")
        for name in ("App-Attest-Assertion", "App-Attest-Key-Id", "Content-Length"):
            self.assertEqual(asked.all(name), [], name)
        self.check_problem(
            self.phone("Bearer b", phone.device).send("POST", "/v1/data/a", b"x"),
            "enrollment_required")

    def test_what_it_answers_and_what_comes_of_it(self):
        self.serve()
        user = ["X-User: alice"]
        for problem, code in (
                (upstream.answer(status="401 Unauthorized", fields=user), "account_required"),
                (upstream.answer(status="403 Forbidden", fields=user), "account_required"),
                (upstream.answer(b"x" * 300_000, "401 Unauthorized"), "account_required"),
                (upstream.answer(), "account_required"),
                (upstream.answer(fields=["X-User:"]), "account_required"),
                (upstream.answer(fields=user * 2), "retry_later"),
                (upstream.answer(fields=["X-User: " + "a" * 257]), "retry_later"),
                (upstream.answer(status="302 Found", fields=user), "retry_later"),
                (upstream.answer(status="404 Not Found", fields=user), "retry_later"),
                (upstream.answer(status="500 Oops", fields=user), "retry_later"),
                (b"nonsense\r\n\r\n", "retry_later")):
            with self.subTest(problem[:60]):
                self.problem = problem
                self.check_problem(self.asks(), code)
                self.check_problem(
                    self.phone("Bearer a").ask("POST", "/v1/data/a", body=b"x" * 1000), code)
        self.problem = upstream.answer(status="202 Accepted", fields=user)
        self.assertEqual(self.asks().status, 200)
        self.check_nothing_upstream()

    def test_a_service_that_is_down_or_silent_is_retry_later(self):
        self.serve()
        self.identity.respond = lambda request: None if gates.pass_time(3) else b""
        started = time.monotonic()
        answer = self.check_problem(self.asks(), "retry_later")
        self.assertLess(time.monotonic() - started, 2.5)
        self.check_reason(answer, "upstream")
        self.identity.close()
        self.check_problem(self.asks(), "retry_later")
        self.assertTrue(self.gate.err.wait(lambda line: "upstream \"identity\"" in line))
        # Off and denied routes never ask; a monitored one is only counted.
        self.assertEqual(self.ask("GET", "/public").status, 200)
        self.check_problem(self.ask("GET", "/closed/a"), "not_found")
        answer = self.ask("POST", "/v1/watched/a", body=b"x" * 200_000)
        self.assertEqual(answer.status, 200)
        self.check_reason(answer, "upstream")
        self.assertEqual(self.service.requests[-1].body, b"x" * 200_000)

    def test_off_and_denied_routes_never_ask(self):
        self.serve()
        self.ask("GET", "/public", [("Authorization", "Bearer a")])
        self.ask("GET", "/closed/a", [("Authorization", "Bearer a")])
        self.assertEqual(self.identity.requests, [])

    def test_an_answer_counts_for_its_credential_alone_and_for_its_time(self):
        self.serve(cache="2s")
        for _ in range(3):
            self.assertEqual(self.asks("Bearer a").status, 200)
        self.assertEqual(len(self.identity.requests), 1)
        # Any other field may be the credential too.
        self.asks("Bearer a", [("Cookie", "s=1")])
        self.asks("Bearer a", [("X-Session", "1")])
        self.assertEqual(len(self.identity.requests), 3)
        alice = self.phone("Bearer a").enrolled()
        bob = self.phone("Bearer b", alice.device)
        self.check_problem(bob.send("POST", "/v1/data/a", b"x"), "enrollment_required")
        # A refusal is never remembered.
        count = len(self.identity.requests)
        for number in range(1, 3):
            self.check_problem(self.asks("Bearer c"), "account_required")
            self.assertEqual(len(self.identity.requests), count + number)
        self.accounts["Bearer c"] = "carol"
        self.assertEqual(self.asks("Bearer c").status, 200)
        # And a good answer is forgotten in its time.
        del self.accounts["Bearer a"]
        gates.pass_time(2.1)
        self.check_problem(self.asks("Bearer a"), "account_required")

    def test_over_http2_nothing_is_lost_while_the_service_is_asked(self):
        self.serve(listener=["http h1 h2c"])
        phone = self.phone("Bearer a").enrolled()
        self.identity.respond = lambda request: gates.pass_time(0.3) or self.tell(request)
        credential = ("Authorization", "Bearer a")
        with wire2.Client(self.gate.address) as client:
            # Bodies larger and smaller than a stream's window, none, and one without a byte.
            for count, (body, binding, path) in enumerate((
                    (os.urandom(200_000), "client_data", "/v1/data/a"),
                    (b"x", "request", "/v1/signed/a"), (None, "client_data", "/v1/data/a"),
                    (b"", "request", "/v1/signed/a")), 1):
                proof = phone.prove("POST", path, body, phone.challenge(), binding)
                stream = client.begin("POST", path, [credential, *proof], end=body is None)
                if body is not None:
                    client.body(stream, body)
                answer = client.answer(stream)
                request = self.check_upstream(answer, count)
                self.assertEqual(request.body, body or b"")
                self.assertEqual(request.get("App-Attest-Account"), "alice")
            # Monitored, without an account: what waited goes on.
            self.accounts.clear()
            for count, body in enumerate((os.urandom(200_000), b"x", None, b""), 5):
                stream = client.begin("POST", "/v1/watched/a", [credential], end=body is None)
                if body is not None:
                    client.body(stream, body)
                answer = client.answer(stream)
                self.assertEqual(self.check_upstream(answer, count).body, body or b"")
                self.check_reason(answer, "account_absent")
            # A stream that is reset meanwhile ends its question alone.
            stream = client.begin("POST", "/v1/data/a", [credential], end=False)
            client.h2.reset_stream(stream)
            client.flush()
            self.check_problem(client.ask("GET", "/v1/data/a", [credential]), "account_required")

    def test_a_client_that_waits_to_be_asked_is_asked_once_the_account_is_known(self):
        self.serve()
        phone = self.phone("Bearer a").enrolled()
        body = b"x" * 1000
        with wire.Connection(self.gate.address) as connection:
            proof = phone.prove("POST", "/v1/data/a", body, phone.challenge())
            head = wire.message("POST", "/v1/data/a", [
                *phone.account, *proof, ("Expect", "100-continue"),
                ("Content-Length", str(len(body)))])
            connection.send(head)
            self.assertEqual(connection.head()[1], 100)
            connection.send(body)
            self.assertEqual(connection.response("POST").status, 200)
            # And one without an account is never asked.
            connection.send(head.replace(b"Bearer a", b"Bearer z"))
            self.check_problem(connection.response("POST"), "account_required")

    def test_requests_in_a_row_on_one_connection(self):
        self.serve()
        phone = self.phone("Bearer a").enrolled()
        with wire.Connection(self.gate.address) as connection:
            for _ in range(5):
                answer = phone.send("POST", "/v1/data/a", b"x" * 5000, connection=connection)
                self.assertEqual(answer.status, 200)
            text = b"".join(
                wire.message("GET", "/v1/data/a", [("Authorization", f"Bearer {name}")])
                for name in "abz")
            connection.send(text)
            codes = [connection.response().code for _ in range(3)]
            self.assertEqual(codes, ["proof_required", "proof_required", "account_required"])

    def test_a_client_that_leaves_ends_the_question(self):
        stage = upstream.Stage()
        self.addCleanup(stage.close)

        def change(settings):
            settings.account = "subrequest identity /auth X-User"
            settings.extra += ["upstream identity {", f"    server 127.0.0.1:{stage.port}", "}"]

        self.run_gate(change)
        connection = wire.Connection(self.gate.address)
        connection.send(wire.message(
            "POST", "/v1/data/a", [("Authorization", "Bearer a")], b"x" * 10))
        asked, _ = stage.accept()
        asked.settimeout(wire.DEADLINE)
        self.assertTrue(asked.recv(65536).startswith(b"GET /auth"))
        connection.socket.setsockopt(
            wire.socket.SOL_SOCKET, wire.socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        connection.close()
        self.assertEqual(asked.recv(65536), b"")
