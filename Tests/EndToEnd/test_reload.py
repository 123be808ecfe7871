"""A reload is a transaction: all of it or nothing, and no connection is dropped (conf.md §6)."""

import shutil
import signal
import threading

import case
import gate as gates
import pki
import secure
import test_websocket
import upstream
import wire

LOADED = r"running configuration \(loaded \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\) stays in force"


class Reload(case.Case):
    def reload(self, change, wanted="reloaded"):
        """Writes the configuration anew and waits for what the gate says to it."""
        change(self.gate.settings)
        self.gate.notifications.clear()
        with open(self.gate.conf, "w", encoding="utf-8") as file:
            file.write(self.gate.settings.text())
        self.gate.signal(signal.SIGHUP)
        self.assertTrue(self.gate.wait_notification("RELOADING=1"))
        self.assertTrue(self.gate.wait_notification("READY=1"))
        self.assertTrue(gates.poll(lambda: wanted in self.gate.err.text), self.gate.err.text)

    def test_routes_change_for_connections_that_are_open(self):
        self.run_gate()
        with wire.Connection(self.gate.address) as connection:
            self.assertEqual(connection.ask("GET", "/new").status, 200)
            self.reload(lambda settings: settings.routes.update({"* /new": ["mode enforce"]}))
            self.check_problem(connection.ask("GET", "/new"), "proof_required")
            self.reload(lambda settings: settings.routes.pop("* /new"))
            self.assertEqual(connection.ask("GET", "/new").status, 200)

    def test_a_request_in_work_ends_as_it_began(self):
        stage = upstream.Stage()
        self.addCleanup(stage.close)
        other = self.recorder()
        self.run_gate(service=stage)
        with wire.Connection(self.gate.address) as connection:
            connection.send(b"POST /public HTTP/1.1\r\nHost: %s\r\nContent-Length: 6\r\n\r\nabc"
                            % gates.HOST.encode())
            service, reader = stage.accept()
            reader.until(b"\r\n\r\n")
            self.reload(lambda settings: settings.__setattr__(
                "servers", [f"127.0.0.1:{other.port}"]))
            connection.send(b"def")
            self.assertEqual(reader.take(6), b"abcdef")
            service.sendall(upstream.answer(b"old\n"))
            self.assertEqual(connection.response("POST").body, b"old\n")
            self.assertEqual(connection.ask("GET", "/public").body, b"ok\n")
        self.assertEqual(len(other.requests), 1)

    def test_a_faulty_file_changes_nothing_and_is_told(self):
        self.run_gate()
        self.reload(lambda settings: settings.routes.update({"* /new": ["mode enforse"]}),
                    "stays in force")
        self.assertIn('did you mean "enforce"', self.gate.err.text)
        self.assertRegex(self.gate.err.text, LOADED)
        self.assertEqual(self.ask("GET", "/new").status, 200)
        self.reload(lambda settings: settings.routes.update({"* /new": ["mode deny 404"]}))
        self.assertEqual(self.ask("GET", "/new").status, 404)

    def test_an_address_that_cannot_be_bound_changes_nothing(self):
        taken = self.recorder()
        self.run_gate()

        def change(settings):
            settings.routes["* /new"] = ["mode deny 404"]
            settings.listener.append(f"address 127.0.0.1:{taken.port}")
        self.reload(change, "stays in force")
        self.assertIn("stop the process that listens there", self.gate.err.text)
        self.assertEqual(self.ask("GET", "/new").status, 200)

    def test_addresses_come_and_go(self):
        self.run_gate()
        first, second = self.gate.settings.port, gates.port()
        kept = wire.Connection(("127.0.0.1", first))
        self.addCleanup(kept.close)
        self.assertEqual(kept.ask("GET", "/public").status, 200)
        self.reload(lambda settings: settings.listener.append(f"address 127.0.0.1:{second}"))
        for port in (first, second):
            self.assertEqual(wire.ask(("127.0.0.1", port), "GET", "/public").status, 200)

        def move(settings):
            settings.listener.pop()
            settings.port = second
        self.reload(move)
        with self.assertRaises(ConnectionRefusedError):
            wire.Connection(("127.0.0.1", first))
        self.assertEqual(kept.ask("GET", "/public").status, 200)
        self.assertEqual(wire.ask(("127.0.0.1", second), "GET", "/public").status, 200)

    def test_a_gate_that_stops_opens_nothing_any_more(self):
        stage = upstream.Stage()
        self.addCleanup(stage.close)
        self.run_gate(service=stage)
        second = gates.port()
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message("GET", "/public"))
            service, reader = stage.accept()
            reader.until(b"\r\n\r\n")
            self.gate.signal(signal.SIGTERM)
            self.assertTrue(self.gate.wait_notification("STOPPING=1"))
            self.gate.settings.listener.append(f"address 127.0.0.1:{second}")
            with open(self.gate.conf, "w", encoding="utf-8") as file:
                file.write(self.gate.settings.text())
            self.gate.signal(signal.SIGHUP)
            self.assertTrue(gates.poll(lambda: "the gate is stopping" in self.gate.err.text))
            with self.assertRaises(ConnectionRefusedError):
                wire.Connection(("127.0.0.1", second))
            service.sendall(upstream.answer())
            self.assertEqual(connection.response().status, 200)

    def test_a_listener_that_has_gone_is_drained(self):
        self.run_gate()
        with wire.Connection(self.gate.address) as idle:
            self.assertEqual(idle.ask("GET", "/public").status, 200)
            self.reload(lambda settings: settings.__setattr__("listener_name", "other"))
            self.assertTrue(idle.is_closed())
        self.assertEqual(self.ask("GET", "/public").status, 200)

    def test_proofs_and_keys_live_through_it(self):
        self.run_gate()
        phone = self.app().enrolled()
        proof = phone.prove("POST", "/v1/data/a", b"x", phone.challenge())
        self.reload(lambda settings: settings.routes.update({"* /more": ["mode off"]}))
        self.assertEqual(self.ask("POST", "/v1/data/a", proof, b"x").status, 200)
        self.check_problem(self.ask("POST", "/v1/data/a", proof, b"x"), "challenge_required")

    def test_limits_count_on(self):
        self.run_gate(lambda settings: settings.rates.update({"challenges": "per_address=3/1h"}))

        def challenge():
            return self.ask("POST", "/v1/app-attest/challenges", (),
                            b'{"purpose":"attestation"}').status
        self.assertEqual([challenge() for _ in range(4)], [200, 200, 200, 429])
        self.reload(lambda settings: settings.routes.update({"* /more": ["mode off"]}))
        self.assertEqual(challenge(), 429)

    def test_a_service_manager_that_does_not_read_holds_nothing_up(self):
        # Each reload sends two messages; the kernel keeps some ten of them for a reader.
        self.run_gate()
        for number in range(12):
            self.gate.settings.routes[f"* /r{number}"] = ["mode deny 410"]
            with open(self.gate.conf, "w", encoding="utf-8") as file:
                file.write(self.gate.settings.text())
            self.gate.signal(signal.SIGHUP)
            self.assertTrue(gates.poll(
                lambda n=number: self.ask("GET", f"/r{n}").status == 410), number)

    def test_what_takes_a_restart_is_said(self):
        self.run_gate()
        self.reload(lambda settings: settings.top.append("loops 7"), '"loops" has changed')

    def test_under_load_no_request_fails(self):
        self.run_gate()
        stop, faults, done = threading.Event(), [], []

        def load(number):
            try:
                with wire.Connection(self.gate.address) as connection:
                    while not stop.is_set():
                        answer = connection.ask("POST", f"/public/{number}", body=b"x")
                        if answer.status != 200 or connection.is_over:
                            faults.append(answer)
                        done.append(1)
            except (OSError, wire.Closed) as error:
                faults.append(error)
        threads = [threading.Thread(target=load, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for number in range(10):
            self.reload(lambda settings, n=number: settings.routes.update(
                {f"* /r{n}": ["mode off"]}))
        stop.set()
        for thread in threads:
            thread.join(15)
        self.assertEqual(faults, [])
        self.assertGreater(len(done), 100)

    def test_a_certificate_is_renewed_and_open_connections_go_on(self):
        authority = pki.Authority(self.temporary(), "tls")
        first = authority.issue("first", gates.HOST)
        second = authority.issue("second", gates.HOST)

        def change(settings):
            settings.listener += ["tls {", f"    {first.line}", "}"]
        self.run_gate(change)
        context = secure.context(authority)

        def shown():
            with secure.Connection(self.gate.address, context, gates.HOST) as connection:
                return connection.socket.getpeercert(binary_form=True)
        before = shown()
        with secure.Connection(self.gate.address, context, gates.HOST) as kept:
            self.assertEqual(kept.ask("GET", "/public").status, 200)
            # As a renewal does: the same paths with other contents.
            shutil.copy(second.pem, first.pem)
            shutil.copy(second.key_pem, first.key_pem)
            self.reload(lambda settings: None)
            self.assertEqual(kept.ask("GET", "/public").status, 200)
        after = shown()
        self.assertEqual((before, after), (first.der, second.der))

    def test_a_websocket_lives_through_it(self):
        stage = upstream.Stage()
        self.addCleanup(stage.close)

        def change(settings):
            settings.routes["GET /live"] = ["mode off", "upgrade websocket"]
        self.run_gate(change, service=stage)
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message("GET", "/live", test_websocket.OPENING))
            service, reader = stage.accept()
            reader.until(b"\r\n\r\n")
            service.sendall(test_websocket.switch())
            self.assertEqual(connection.read_head().status, 101)
            self.reload(lambda settings: settings.routes.pop("GET /live"))
            connection.send(b"ping")
            self.assertEqual(reader.take(4), b"ping")
            service.sendall(b"pong")
            self.assertEqual(connection.take(4), b"pong")
