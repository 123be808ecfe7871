"""Start, readiness, signals and the end of the process; what it logs."""

import json
import os
import re
import signal
import socket
import time

import app
import case
import gate as gates
import upstream
import wire


class Life(case.Case):
    def test_readiness_comes_by_sd_notify_and_stopping_is_told(self):
        self.run_gate()
        self.assertIn("READY=1", self.gate.notifications)
        self.assertEqual(self.gate.readyz(), 200)
        self.gate.signal(signal.SIGTERM)
        self.assertTrue(self.gate.wait_notification("STOPPING=1"))
        self.assertEqual(self.gate.stop(), 0)

    def test_sigterm_lets_requests_in_work_finish(self):
        stage = upstream.Stage()
        self.addCleanup(stage.close)
        self.run_gate(service=stage)
        phone = self.app().enrolled()
        proof = phone.prove("GET", "/v1/data/a", None, phone.challenge())
        idle = wire.Connection(self.gate.address)
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message("GET", "/v1/data/a", proof))
            service, reader = stage.accept()
            reader.request()
            self.gate.signal(signal.SIGTERM)
            self.assertTrue(self.gate.wait_notification("STOPPING=1"))
            self.assertTrue(idle.is_closed())
            self.assertTrue(gates.poll(self.refuses))  # by now every loop is draining
            service.sendall(upstream.answer(b"late"))
            answer = connection.response()
            self.assertEqual((answer.status, answer.body), (200, b"late"))
            self.assertEqual(answer.get("Connection"), "close")
        idle.close()
        self.assertEqual(self.gate.stop(), 0)

    def test_a_draining_gate_takes_no_new_connections_and_is_not_ready(self):
        stage = upstream.Stage()
        self.addCleanup(stage.close)
        self.run_gate(service=stage)
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message("GET", "/public"))
            stage.accept()
            self.gate.signal(signal.SIGTERM)
            self.assertTrue(self.gate.wait_notification("STOPPING=1"))
            self.assertTrue(gates.poll(self.refuses))
            try:
                self.assertEqual(self.gate.readyz(), 503)
            except (OSError, wire.Closed):
                pass  # the admin listener may be gone as well
        self.gate.stop()

    def refuses(self):
        try:
            with wire.Connection(self.gate.address) as connection:
                connection.ask("GET", "/v1/data/a")
            return False
        except (OSError, wire.Closed):
            return True

    def test_draining_ends_with_its_time(self):
        stage = upstream.Stage()
        self.addCleanup(stage.close)

        def change(settings):
            settings.top = ["drain_timeout 1s"]
        self.run_gate(change, service=stage)
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message("GET", "/public"))
            stage.accept()
            self.gate.signal(signal.SIGTERM)
            self.gate.process.wait(10)

    def test_sigint_ends_as_well(self):
        self.run_gate()
        self.gate.signal(signal.SIGINT)
        self.gate.process.wait(wire.DEADLINE)

    def test_a_port_that_is_taken_is_an_error_of_the_environment(self):
        taken = socket.socket()
        self.addCleanup(taken.close)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        running = self.run_gate(
            lambda settings: settings.__setattr__("port", taken.getsockname()[1]), start=False)
        with self.assertRaises(AssertionError):
            running.start()
        self.assertEqual(running.process.returncode, 3, running.err.text)
        self.assertIn(str(taken.getsockname()[1]), running.err.text)
        self.assertRegex(running.err.text, r"(?m)^attestgate: ")

    def test_a_faulty_configuration_does_not_start(self):
        running = self.run_gate(
            lambda settings: settings.top.append("nonsense"), start=False)
        with self.assertRaises(AssertionError):
            running.start()
        self.assertEqual(running.process.returncode, 2, running.err.text)
        self.assertRegex(running.err.text, r"proxy\.conf:\d+:\d+: error: unknown directive")

    def test_few_descriptors_refuse_some_and_recover(self):
        for number in range(5):
            with self.subTest(number=number):
                self.exhaust()

    def exhaust(self):
        """Takes every descriptor a fresh gate may have, gives them back, and expects service."""
        self.run_gate(prefix=["prlimit", "--nofile=64"])
        held = []
        try:
            for _ in range(200):
                try:
                    held.append(wire.Connection(self.gate.address, timeout=5))
                except OSError:
                    break
        finally:
            for connection in held:
                connection.close()
        self.assertTrue(gates.poll(self.serves), self.gate.err.text)
        for _ in range(20):  # on each loop
            self.assertTrue(self.serves(), self.gate.err.text)
        self.assertTrue(self.gate.is_alive, self.gate.err.text)

    def serves(self):
        try:
            return self.ask("GET", "/public").status == 200
        except (OSError, wire.Closed):
            return False

    def test_clients_are_told_apart(self):
        self.run_gate()
        for number in range(1, 21):
            answer = self.ask("GET", "/public", source=f"127.0.1.{number}")
            self.assertEqual(answer.status, 200)
            request = self.service.wait(number)[-1]
            self.assertEqual(request.get("X-Forwarded-For"), f"127.0.1.{number}")


class Expiry(case.Case):
    def test_an_expired_challenge_is_refused_and_the_next_one_serves(self):
        self.run_gate(lambda settings: settings.host.append(
            "challenge ttl=1s attestation_ttl=1s"))
        phone = self.app().enrolled()
        for binding, path in (("client_data", "/v1/data/a"), ("request", "/v1/signed/a")):
            answer = phone.call("challenges", {"purpose": "request"})
            self.assertLessEqual(answer.json["expiresIn"], 1)
            challenge = app.Challenge.from_json(answer.json)
            gates.wait_for_clock(time.time() + 2.1)
            answer = phone.send("GET", path, binding=binding, challenge=challenge)
            self.check_problem(answer, "challenge_required")
            self.check_reason(answer, "challenge_expired")
            fresh = self.check_next_challenge(answer)
            answer = phone.send("GET", path, binding=binding, challenge=fresh)
            self.assertEqual(answer.status, 200, answer)
        late = phone.challenge("attestation")
        other = self.app()
        gates.wait_for_clock(time.time() + 2.1)
        self.check_problem(other.enrol(late), "challenge_required")


class Log(case.SharedGate):
    FIELDS = {"time", "request_id", "client", "listener", "host", "method", "target", "protocol",
              "status", "bytes_in", "bytes_out", "duration"}

    def test_a_line_of_a_verified_request(self):
        phone = self.app().enrolled()
        answer = phone.send("POST", "/v1/data/a?secret=1", b"hello", fields=[
            ("Cookie", "cookie-text"), ("Authorization", "bearer-text")])
        entry = self.gate.logged(answer)
        self.assertLessEqual(self.FIELDS, set(entry), entry)
        self.assertRegex(entry["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)$")
        self.assertEqual(entry["method"], "POST")
        self.assertEqual(entry["target"], "/v1/data/a")
        self.assertEqual(entry["host"], gates.HOST)
        self.assertEqual(entry["listener"], "main")
        self.assertEqual(entry["client"], "127.0.0.1")
        self.assertEqual(entry["protocol"], "HTTP/1.1")
        self.assertEqual(entry["status"], 200)
        self.assertEqual(entry["verdict"], "verified")
        self.assertEqual(entry["app"], "shop")
        self.assertEqual(entry["key"], phone.key_id[:8])
        self.assertEqual(entry["counter"], phone.device.counter)
        self.assertIn("/v1/data/*", entry["route"])
        for name in ("duration", "verify", "commit", "upstream_duration"):
            self.assertIsInstance(entry[name], (int, float), name)
            self.assertGreaterEqual(entry[name], 0)
            self.assertLess(entry[name], 10)
        self.assertIn(str(self.service.port), entry["upstream"])

    def test_what_is_secret_never_stands_in_the_log(self):
        phone = self.app().enrolled()
        challenge = phone.challenge()
        proof = phone.prove("POST", "/v1/data/a", b"body-text", challenge)
        answer = phone.ask("POST", "/v1/data/a", [
            *proof, ("Cookie", "cookie-text"), ("Authorization", "bearer-text")], b"body-text")
        self.assertIsNotNone(self.gate.logged(answer))
        text = self.gate.out.text + self.gate.err.text
        for secret in ("body-text", "cookie-text", "bearer-text", challenge.id, phone.key_id,
                       app.b64(challenge.bytes), *(value for _, value in proof)):
            self.assertNotIn(secret, text)

    def test_every_request_has_its_line_and_every_line_is_json(self):
        seen = []
        phone = self.app()
        for text in (
            "GET /public HTTP/1.1\r\nHost: api.example.test\r\n\r\n",
            "GET /pub\"lic HTTP/1.1\r\nHost: api.example.test\r\n\r\n",
            "GET /public%0a{\"a\":1} HTTP/1.1\r\nHost: api.example.test\r\n\r\n",
            "GET /public HTTP/1.1\r\nHost: other.example.test\r\n\r\n",
            "GET /v1/data/a HTTP/1.1\r\nHost: api.example.test\r\n"
            "User-Agent: \x1b[2J\r\n\r\n",
            "GET /closed/a HTTP/1.1\r\nHost: api.example.test\r\n\r\n",
            "GET /v1/exports HTTP/1.1\r\nHost: api.example.test\r\n\r\n",
            "BREW /public HTTP/1.1\r\nHost: api.example.test\r\n\r\n",
            "GET /public HTTP/1.1\r\nHost: api.example.test\r\nBad : x\r\n\r\n",
        ):
            seen.append(self.raw(text))
        seen.append(phone.call("challenges", {"purpose": "request"}))
        seen.append(phone.call("challenges", b"{"))
        for answer in seen:
            entry = self.gate.logged(answer)
            self.assertIsNotNone(entry, answer)
            self.assertEqual(entry["status"], answer.status)
        for line in self.gate.out.lines:
            self.assertIsInstance(json.loads(line), dict)
            self.assertRegex(line, r"^[\x20-\x7e]*$")

    def test_reasons_of_refusals_before_any_proof(self):
        for text, reason in (
            ("GET //a HTTP/1.1\r\nHost: api.example.test\r\n\r\n", "path_ambiguous"),
            ("GET /a HTTP/1.1\r\nHost: other.test\r\n\r\n", "host_unknown"),
            ("GET /v1/exports HTTP/1.1\r\nHost: api.example.test\r\n\r\n", "method_not_allowed"),
            ("GET /gone/a HTTP/1.1\r\nHost: api.example.test\r\n\r\n", "denied"),
            ("GET /a HTTP/1.1\r\nHost: api.example.test\r\nX : a\r\n\r\n", "malformed"),
            ("GET /v1/data/a HTTP/1.1\r\nHost: api.example.test\r\n\r\n", "proof_absent"),
        ):
            with self.subTest(reason=reason):
                self.check_reason(self.raw(text), reason)

    def test_request_ids_are_unique(self):
        found = {self.ask("GET", "/public").get("X-Request-Id") for _ in range(50)}
        self.assertEqual(len(found), 50)
        for identifier in found:
            self.assertRegex(identifier, r"^[A-Za-z0-9._-]{1,128}$")


class LogFile(case.Case):
    def test_the_log_goes_to_a_file_and_is_reopened(self):
        path = os.path.join(self.temporary(), "access.log")

        def change(settings):
            settings.top.append(f"log {{\n    access {path}\n    query_in_log on\n}}")
        self.run_gate(change)
        answer = self.ask("GET", "/public?a=b")
        self.assertTrue(gates.poll(lambda: os.path.exists(path) and os.path.getsize(path)))
        with open(path, encoding="ascii") as file:
            entry = json.loads(file.readline())
        self.assertEqual(entry["target"], "/public?a=b")
        self.assertEqual(entry["request_id"], answer.get("X-Request-Id"))
        os.rename(path, path + ".1")
        self.gate.signal(signal.SIGUSR1)
        self.assertTrue(gates.poll(
            lambda: self.ask("GET", "/public").status == 200 and os.path.exists(path)))
        self.assertFalse(re.search("public", self.gate.out.text))


class Ports(case.Case):
    def test_a_second_gate_on_a_port_that_is_served_is_refused(self):
        self.run_gate()
        first = self.gate
        self.run_gate(
            lambda settings: setattr(settings, "port", first.settings.port), start=False)
        with self.assertRaisesRegex(AssertionError, "bind: Address already in use"):
            self.gate.start()
        self.assertEqual(self.gate.process.returncode, 3)

    def test_a_gate_whose_output_nobody_reads_still_ends(self):
        fifo = os.path.join(self.temporary(), "fifo")
        os.mkfifo(fifo)
        # Open for reading as well, so that it neither blocks nor breaks; nobody ever reads.
        descriptor = os.open(fifo, os.O_RDWR)
        self.addCleanup(os.close, descriptor)
        self.run_gate(prefix=["sh", "-c", f'exec "$@" > {fifo}', "sh"])
        for _ in range(400):
            self.ask("GET", "/public/" + "x" * 200)
        self.gate.signal(signal.SIGTERM)
        self.assertEqual(self.gate.process.wait(15), 0)
