"""`fallback devicecheck` and `set_bits`, against the stand-in of Apple's servers."""

import base64
import signal
import struct
import threading
import time

import app
import apple
import gate as gates
import upstream
import wire
import wire2
from apple import QUERY, UPDATE, VALIDATE

ACCOUNT = ("X-Account-Id", "alice")


class DeviceCheck(apple.Case):
    def serve(self, *fallback, change=None, account=True, **options):
        """A gate whose /v1/fallback falls back to `fallback devicecheck …`."""
        def configure(settings):
            settings.extra += self.block()
            if account:
                settings.listener.append("trusted_proxies 127.0.0.1/32")
                settings.account = "header X-Account-Id"
            settings.routes["* /v1/fallback/*"] = [
                " ".join(["fallback devicecheck", *fallback]), "body max=64k memory=4k"]
            settings.routes["* /v1/promotion/*"] = [
                "fallback devicecheck bit0=0", "set_bits bit0=1"]
            settings.routes["* /v1/denied/*"] = []
            if change:
                change(settings)
        self.run_gate(configure, **options)

    def tearDown(self):
        # What the gate asked was always as Apple wants it, and no token is in any log.
        self.assertEqual(self.apple.problems, [])
        logs = self.gate.err.text + self.gate.out.text
        for data in self.apple._tokens:
            text = base64.b64encode(data).decode()
            self.assertNotIn(text[:24], logs)
            self.assertNotIn(text[-24:], logs)
        for token in self.apple._authorizations:
            self.assertNotIn(token.split(".")[2], logs)
        self.assertNotIn("PRIVATE", logs)

    def fields(self, token, *others, account=ACCOUNT):
        fields = [("App-Attest-Unsupported", "?1"), *others]
        if account:
            fields.append(account)
        if token:
            fields.append(("App-Attest-Device-Token", token))
        return fields

    def fall_back(self, token, body=b"{}", path="/v1/fallback/a", **options):
        return self.ask("POST", path, self.fields(token, **options), body)

    def refused(self, answer, code, reason):
        self.check_problem(answer, code)
        self.check_reason(answer, reason)
        return answer

    # What passes, and what does not.

    def test_a_token_passes_once_with_the_verdict_fallback(self):
        self.serve()
        token = self.apple.token()
        request = self.check_upstream(self.fall_back(token, b'{"a": 1}'))
        self.assertEqual(request.get("App-Attest-Verdict"), "fallback")
        self.assertEqual(request.get("App-Attest-Account"), "alice")
        self.assertEqual(request.body, b'{"a": 1}')
        for name in ("Verified-Key", "Counter", "Device-Token", "Unsupported"):
            self.assertIsNone(request.get(f"App-Attest-{name}"))
        self.assertEqual([call.path for call in self.apple.calls], [VALIDATE])
        self.refused(self.fall_back(token), "unsupported", "device_token_spent")
        # The same bytes in another spelling are the same token, and Apple was not asked again.
        url = token.replace("+", "-").replace("/", "_").rstrip("=")
        self.refused(self.fall_back(url), "unsupported", "device_token_spent")
        self.assertEqual(len(self.apple.calls), 1)
        self.assertEqual(len(self.service.requests), 1)
        # Nothing of the first serves another.
        self.check_upstream(self.fall_back(self.apple.token()), 2)
        self.assertEqual(len(self.apple.calls), 2)
        self.assertEqual(self.apple.authorizations, 1)

    def test_a_token_stays_spent_when_the_gate_is_killed(self):
        self.serve()
        token = self.apple.token()
        self.check_upstream(self.fall_back(token))
        self.gate.kill()
        self.gate.start()
        self.refused(self.fall_back(token), "unsupported", "device_token_spent")

    def test_one_of_many_copies_passes(self):
        self.serve()
        token = self.apple.token()
        self.apple.fail("slow:0.2")
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.fall_back(token)))
                   for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(answer.status for answer in answers), [200] + [403] * 7)
        self.assertEqual(len(self.service.requests), 1)

    def test_bits_are_conditions_and_reach_the_service(self):
        self.serve("bit0=1", "bit1=0")
        token = self.apple.token()
        # Never set is not set.
        self.refused(self.fall_back(token), "unsupported", "device_bits")
        device = self.apple.device(token)
        device.bits, device.month = (True, False), "2026-11"
        request = self.check_upstream(self.fall_back(token))
        self.assertEqual(request.get("App-Attest-Risk"), "bit0=?1, bit1=?0")
        device.bits = (True, True)
        self.refused(self.fall_back(self.apple.token(device)), "unsupported", "device_bits")
        self.assertEqual({call.path for call in self.apple.calls}, {QUERY})

    def test_no_state_is_two_bits_that_are_not_set(self):
        self.serve("bit1=0")
        request = self.check_upstream(self.fall_back(self.apple.token()))
        self.assertEqual(request.get("App-Attest-Risk"), "bit0=?0, bit1=?0")

    def test_an_object_whose_bits_cannot_be_read_is_no_state_at_all(self):
        self.serve("bit0=0")
        faults = apple.peer_apple.FAULTS
        self.addCleanup(faults.pop, "object")
        token = self.apple.token()
        for text in ('{}', ' {"bit0":false}', '{"bit0":1,"bit1":0}', '{"bit0":tr',
                     '{"bit0":true,"bit0":false,"bit1":false}'):
            faults["object"] = (200, text)
            self.apple.fail("object", times=1)
            self.unavailable(self.fall_back(token))
        self.check_nothing_upstream()
        self.check_upstream(self.fall_back(token))
        # Bits that are not known are not written over.
        fresh = self.apple.token()
        device = self.apple.device(fresh)
        device.bits = (False, True)
        faults["object"] = (200, '{"bit0":false}')
        self.apple.fail("object", times=1, path=QUERY)
        self.check_upstream(self.app(account="bob").enrolled().send(
            "POST", "/v1/promotion/a", b"{}", fields=[("App-Attest-Device-Token", fresh)]), 2)
        self.bits(fresh, (True, True))

    def test_what_is_no_token_of_the_team(self):
        self.serve("bit0=0")
        for token in (None, "AAAA", self.apple.token(environment="development")):
            self.refused(self.fall_back(token), "unsupported", "device_token_invalid")
        old = self.apple.token()
        self.apple.expire(old)
        self.refused(self.fall_back(old), "unsupported", "device_token_invalid")
        self.check_problem(self.fall_back("%%%"), "bad_request")
        # However many of them, Apple is not thought to be down.
        for _ in range(10):
            self.refused(self.fall_back("AAAA"), "unsupported", "device_token_invalid")
        self.check_upstream(self.fall_back(self.apple.token()))

    def test_without_the_word_or_on_another_route_a_token_is_nothing(self):
        self.serve()
        token = self.apple.token()
        fields = [ACCOUNT, ("App-Attest-Device-Token", token)]
        self.refused(self.ask("POST", "/v1/fallback/a", fields, b"{}"),
                     "proof_required", "proof_absent")
        self.refused(self.fall_back(token, path="/v1/denied/a"), "unsupported", "unsupported")
        self.assertEqual(self.apple.calls, [])
        self.check_upstream(self.fall_back(token))

    def test_an_account_with_a_key_attests(self):
        self.serve()
        phone = self.app(account="alice").enrolled()
        self.refused(self.fall_back(self.apple.token()), "unsupported", "unsupported")
        bob = ("X-Account-Id", "bob")
        self.check_upstream(self.fall_back(self.apple.token(), account=bob))
        answer = phone.call("keys/revoke", {"keyID": phone.key_id})
        self.assertEqual(answer.status, 204)
        self.refused(self.fall_back(self.apple.token()), "unsupported", "unsupported")
        self.assertEqual(len(self.apple.calls), 1)

    def test_also_enrolled_lets_such_an_account_pass(self):
        self.serve("also_enrolled")
        self.app(account="alice").enrolled()
        self.check_upstream(self.fall_back(self.apple.token()))

    def test_the_rate_is_per_account(self):
        self.serve("rate=2/1h")
        for number in range(2):
            self.check_upstream(self.fall_back(self.apple.token()), number + 1)
        answer = self.fall_back(self.apple.token())
        self.refused(answer, "rate_limited", "rate_limited")
        self.assertEqual(answer.get("RateLimit-Policy"), '"fallback";q=2;w=3600')
        self.assertEqual(
            answer.get("RateLimit"), f'"fallback";r=0;t={answer.get("Retry-After")}')
        host = f"127.0.0.1:{self.gate.settings.admin_port}"
        figures = wire.ask(self.gate.admin, "GET", "/metrics", host=host).body.decode()
        self.assertIn('attestgate_rate_limited_total{limit="fallback"} 1\n', figures)
        bob = ("X-Account-Id", "bob")
        self.check_upstream(self.fall_back(self.apple.token(), account=bob), 3)
        self.assertEqual(len(self.apple.calls), 3)

    def test_the_rate_is_per_address_where_there_are_no_accounts(self):
        self.serve("rate=1/1h", account=False)
        self.check_upstream(self.fall_back(self.apple.token(), account=None))
        self.refused(self.fall_back(self.apple.token(), account=None),
                     "rate_limited", "rate_limited")

    # The body and the client.

    def test_the_body_is_whole_before_anything_goes_on(self):
        self.serve()
        token = self.apple.token()
        with wire.Connection(self.gate.address) as connection:
            fields = self.fields(token, ("Content-Length", "6"), ("Expect", "100-continue"))
            connection.send(wire.message("POST", "/v1/fallback/a", fields))
            self.assertEqual(connection.head()[1], 100)
            self.assertEqual(len(self.apple.wait(1)), 1)
            connection.send(b"abc")
            gates.pass_time(0.3)
            self.check_nothing_upstream()
        # The client went away; its token is good.
        self.check_upstream(self.fall_back(token))
        with wire.Connection(self.gate.address) as connection:
            fields = self.fields("AAAA", ("Content-Length", "6"), ("Expect", "100-continue"))
            connection.send(wire.message("POST", "/v1/fallback/a", fields))
            answer = connection.response("POST")
            self.assertEqual(answer.interim, [])
            self.check_problem(answer, "unsupported")
        large = self.fall_back(self.apple.token(), b"x" * 20_000)
        self.assertEqual(self.check_upstream(large, 2).body, b"x" * 20_000)
        self.check_problem(self.fall_back(self.apple.token(), b"x" * 70_000), "too_large")

    def test_who_waits_to_be_asked_for_the_body_is_not_late_meanwhile(self):
        def change(settings):
            settings.listener += ["timeouts body=1s", "http h1 h2c"]
        self.serve("timeout=5s", change=change)
        self.apple.fail("slow:2.8")
        fields = self.fields(
            self.apple.token(), ("Content-Length", "2"), ("Expect", "100-continue"))
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message("POST", "/v1/fallback/a", fields))
            self.assertEqual(connection.head()[1], 100)
            # From here on it has the time of a body, all of it.
            gates.pass_time(0.6)
            connection.send(b"{}")
            self.check_upstream(connection.response("POST"))
        fields = [(name.lower(), value) for name, value in self.fields(
            self.apple.token(), ("expect", "100-continue"))]
        with wire2.Client(self.gate.address) as client:
            stream = client.begin("POST", "/v1/fallback/a", fields, end=False)
            self.apple.wait(2)
            gates.pass_time(3.4)
            client.body(stream, b"{}")
            self.check_upstream(client.answer(stream), 2)
            late = [(name, self.apple.token() if name.endswith("token") else value)
                    for name, value in fields]
            # Once it was asked, it is late after all.
            answer = client.answer(client.begin("POST", "/v1/fallback/a", late, end=False))
            self.assertEqual(answer.status, 408)

    def test_a_monitored_route_counts_and_forwards(self):
        self.serve(change=lambda settings: settings.routes["* /v1/fallback/*"].append(
            "mode monitor"))
        request = self.check_upstream(self.fall_back(self.apple.token()))
        self.assertEqual(request.get("App-Attest-Verdict"), "fallback")
        answer = self.fall_back("AAAA")
        self.assertEqual(self.check_upstream(answer, 2).get("App-Attest-Verdict"), "monitored")
        self.check_reason(answer, "device_token_invalid")
        self.apple.stop()
        answer = self.fall_back(self.apple.token())
        self.assertEqual(self.check_upstream(answer, 3).get("App-Attest-Verdict"), "monitored")
        self.check_reason(answer, "apple_unavailable")

    # Apple in trouble.

    def unavailable(self, answer):
        return self.refused(answer, "retry_later", "apple_unavailable")

    def test_apple_in_trouble_is_retry_later(self):
        for fault in ("429", "500", "503", "reset", "close", "garbage", "endless", "expired",
                      "401", "403"):
            with self.subTest(fault):
                self.serve()
                self.apple.fail(fault, times=3)
                token = self.apple.token()
                self.unavailable(self.fall_back(token))
                self.apple.mend()
                self.gate.kill()
                self.gate.start()
                # Nothing was spent.
                self.check_upstream(self.fall_back(token))
                self.gate.kill()

    def test_a_fault_of_the_operator_s_is_an_error_with_apple_s_words_and_trace(self):
        self.serve()
        self.apple.fail("401")
        self.unavailable(self.fall_back(self.apple.token()))
        said = self.gate.err.wait(lambda line: "answered 401" in line)
        self.assertIn("error", said)
        self.assertIn("Unable to verify authorization token", said)
        self.assertIn(self.apple.calls[0].trace, said)
        # A 400 about the clock is the gate's fault and no device's.
        self.apple.mend()
        peer = apple.peer_apple.FAULTS
        peer["clock"] = (400, "Missing or incorrectly formatted time stamp")
        self.addCleanup(peer.pop, "clock")
        self.apple.fail("clock")
        self.unavailable(self.fall_back(self.apple.token()))

    def test_apple_slow_is_not_waited_for_beyond_the_time_and_others_do_not_feel_it(self):
        self.serve("timeout=1s")
        self.apple.fail("hang")
        alone = self.bystander(60)
        threads = [threading.Thread(target=self.fall_back, args=(self.apple.token(),))
                   for _ in range(16)]
        for thread in threads:
            thread.start()
        self.apple.wait(1)
        beside = self.bystander(60)
        started = time.monotonic()
        self.unavailable(self.fall_back(self.apple.token()))
        self.assertLess(time.monotonic() - started, 3)
        for thread in threads:
            thread.join()
        self.assertLess(beside, max(10 * alone, 0.5), f"{beside:.4f} s, alone {alone:.4f} s")

    def bystander(self, count):
        """The longest but one of so many requests to a route that has nothing to do with Apple."""
        times = []
        with wire.Connection(self.gate.address) as connection:
            for _ in range(count):
                started = time.monotonic()
                self.assertEqual(connection.ask("GET", "/public").status, 200)
                times.append(time.monotonic() - started)
        return sorted(times)[-2]

    def test_the_breaker_opens_leaves_apple_alone_and_closes_again(self):
        self.serve()
        self.apple.fail("500")
        for _ in range(5):
            self.unavailable(self.fall_back(self.apple.token()))
        self.assertEqual(len(self.apple.calls), 5)
        started = time.monotonic()
        answer = self.unavailable(self.fall_back(self.apple.token()))
        self.assertLess(time.monotonic() - started, 1)
        self.assertIn(int(answer.get("Retry-After")), range(5, 12))
        self.assertEqual(len(self.apple.calls), 5)
        # One is let through, fails, and nothing more is asked.
        gates.pass_time(10.2)
        self.unavailable(self.fall_back(self.apple.token()))
        self.unavailable(self.fall_back(self.apple.token()))
        self.assertEqual(len(self.apple.calls), 6)
        self.apple.mend()
        gates.pass_time(10.2)
        self.check_upstream(self.fall_back(self.apple.token()))
        self.check_upstream(self.fall_back(self.apple.token()), 2)
        self.assertTrue(self.gate.err.wait(lambda line: "answers again" in line))

    def test_retry_after_of_apple_s_is_kept_to_and_said_on(self):
        self.serve()
        self.apple.fail("429", times=1, retry_after=20)
        answer = self.unavailable(self.fall_back(self.apple.token()))
        self.assertEqual(answer.get("Retry-After"), "20")
        answer = self.unavailable(self.fall_back(self.apple.token()))
        self.assertIn(int(answer.get("Retry-After")), range(15, 22))
        self.assertEqual(len(self.apple.calls), 1)

    def test_nobody_else_is_taken_for_apple(self):
        other = apple.pki.Authority(self.temporary(), "other")
        def change(settings):
            settings.extra = [line.replace(self.authority.pem, other.pem)
                              for line in settings.extra]
        self.serve(change=change)
        self.unavailable(self.fall_back(self.apple.token()))
        self.assertEqual(self.apple.calls, [])
        self.assertTrue(self.gate.err.wait(lambda line: "TLS" in line))

    def test_a_reload_changes_whom_the_gate_asks(self):
        dead = gates.port()
        def change(settings):
            settings.extra = [line.replace(self.apple.url, f"https://127.0.0.1:{dead}")
                              for line in settings.extra]
        self.serve(change=change)
        self.unavailable(self.fall_back(self.apple.token()))
        settings = self.gate.settings
        settings.extra = [line.replace(f"https://127.0.0.1:{dead}", self.apple.url)
                          for line in settings.extra]
        with open(self.gate.conf, "w", encoding="utf-8") as file:
            file.write(settings.text())
        self.gate.signal(signal.SIGHUP)
        self.assertTrue(self.gate.wait_notification("RELOADING=1"))
        self.assertTrue(gates.poll(lambda: self.fall_back(self.apple.token()).status == 200))

    def test_the_outcomes_stay_apart(self):
        """Unsupported, retry later, rejected; neither says that a key is to be enrolled."""
        self.serve("bit0=1")
        self.refused(self.fall_back(self.apple.token()), "unsupported", "device_bits")
        self.apple.stop()
        self.unavailable(self.fall_back(self.apple.token()))

    # set_bits

    def promote(self, token, **options):
        return self.fall_back(token, path="/v1/promotion/a", **options)

    def bits(self, token, expected):
        device = self.apple.device(token)
        self.assertTrue(gates.poll(lambda: device.bits == expected), device.bits)

    def test_bits_are_set_after_a_good_answer_the_other_bit_as_it_was(self):
        self.serve()
        token = self.apple.token()
        device = self.apple.device(token)
        device.bits = (False, True)
        self.check_upstream(self.promote(token))
        self.bits(token, (True, True))
        # The promotion is claimed, reinstalled or not.
        self.refused(self.promote(self.apple.token(device)), "unsupported", "device_bits")

    def test_bits_are_set_with_a_proof_as_well(self):
        self.serve()
        phone = self.app(account="alice").enrolled()
        token = self.apple.token()
        answer = phone.send("POST", "/v1/promotion/a", b"{}",
                            fields=[("App-Attest-Device-Token", token)])
        self.assertEqual(self.check_upstream(answer).get("App-Attest-Verdict"), "verified")
        self.bits(token, (True, False))
        # A proof without a token sets nothing.
        self.check_upstream(phone.send("POST", "/v1/promotion/a", b"{}"), 2)
        self.assertEqual([call.path for call in self.apple.calls], [QUERY, UPDATE])

    def test_no_bits_are_set_where_the_service_says_no(self):
        self.serve()
        self.service.respond = lambda request: upstream.answer(b"no", "409 Conflict")
        token = self.apple.token()
        self.assertEqual(self.promote(token).status, 409)
        gates.pass_time(0.5)
        self.assertIsNone(self.apple.device(token).bits)
        self.refused(self.promote(None), "unsupported", "device_token_invalid")

    def test_bits_are_set_for_a_client_that_leaves_before_the_answer(self):
        self.serve(change=lambda settings: settings.listener.append("http h1 h2c"))
        answers = [upstream.answer(), upstream.answer(), upstream.answer(b"no", "409 Conflict")]
        asked = threading.Semaphore(0)
        left = threading.Event()

        def respond(request):
            asked.release()
            left.wait(wire.DEADLINE)
            return answers.pop(0)
        self.service.respond = respond
        devices = []
        for _ in range(3):
            left.clear()
            token = self.apple.token()
            devices.append(self.apple.device(token))
            fields = self.fields(token)
            if len(devices) == 2:
                with wire2.Client(self.gate.address) as client:
                    fields = [(name.lower(), value) for name, value in fields]
                    stream = client.begin("POST", "/v1/promotion/a", fields)
                    self.assertTrue(asked.acquire(timeout=wire.DEADLINE))
                    client.h2.reset_stream(stream)
                    client.flush()
                    gates.pass_time(0.3)
            else:
                connection = wire.Connection(self.gate.address)
                connection.send(wire.message(
                    "POST", "/v1/promotion/a", fields, b"{}"))
                self.assertTrue(asked.acquire(timeout=wire.DEADLINE))
                connection.socket.setsockopt(
                    wire.socket.SOL_SOCKET, wire.socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()
                gates.pass_time(0.3)
            left.set()
            if len(devices) < 3:
                self.bits(token, (True, False))
        # The service said no.
        gates.pass_time(0.5)
        self.assertIsNone(devices[2].bits)

    def test_bits_are_tried_again_and_the_answer_does_not_wait(self):
        self.serve()
        token = self.apple.token()
        self.apple.fail("500", times=1, path=UPDATE)
        self.check_upstream(self.promote(token))
        self.bits(token, (True, False))
        self.assertEqual(len(self.apple.wait(2, UPDATE)), 2)
        slow = self.apple.token()
        self.apple.fail("slow:2", times=1, path=UPDATE)
        started = time.monotonic()
        self.check_upstream(self.promote(slow), 2)
        self.assertLess(time.monotonic() - started, 1.5)
        self.bits(slow, (True, False))

    def test_bits_that_are_lost_are_logged(self):
        self.serve()
        token = self.apple.token()
        self.apple.fail("token", path=UPDATE)
        self.check_upstream(self.promote(token))
        self.assertTrue(self.gate.err.wait(
            lambda line: "set_bits" in line and "lost" in line and "error" in line))
        self.apple.mend()
        self.apple.fail("500", path=UPDATE)
        self.check_upstream(self.promote(self.apple.token()), 2)
        self.apple.wait(2, UPDATE)
        self.assertEqual(self.gate.stop(), 0)
        self.assertIn("lost: the gate stops", self.gate.err.text)


class Check(apple.Case):
    def test_what_check_says_of_the_block(self):
        def report(change):
            settings = gates.Settings(self.temporary(), gates.port())
            with open(settings.root, "wb") as file:
                file.write(app.new_root().pem().encode())
            settings.routes["POST /v1/fallback"] = ["fallback devicecheck"]
            settings.extra += self.block()
            change(settings)
            path = f"{settings.directory}/proxy.conf"
            with open(path, "w", encoding="utf-8") as file:
                file.write(settings.text())
            return gates.command("check", "-c", path)

        good = report(lambda settings: None)
        self.assertEqual(good.returncode, 0, good.stdout + good.stderr)
        self.assertIn("and not to Apple", good.stdout + good.stderr)
        none = report(lambda settings: settings.extra.clear())
        self.assertEqual(none.returncode, 2)
        self.assertIn("asks Apple's servers", none.stdout + none.stderr)

        def spoil(settings):
            with open(self.apple_key, "w", encoding="ascii") as file:
                file.write(open(self.authority.root.key_pem).read().replace("PRIVATE", "PUBLIC"))
        bad = report(spoil)
        self.assertEqual(bad.returncode, 2)
        self.assertIn("no BEGIN PRIVATE KEY in it", bad.stdout + bad.stderr)
