"""Limits and timeouts of a client's connection: each is kept, and the log names it."""

import os
import threading
import time

import case
import gate as gates
import upstream
import wire


class Connections(case.Case):
    """One loop, so that the connections meet there."""

    def begin(self, *listener, **options):
        self.stage = upstream.Stage()
        self.addCleanup(self.stage.close)

        def change(settings):
            settings.top.append("loops 1")
            settings.listener += listener
        self.run_gate(change, service=self.stage, **options)

    def connect(self, **options):
        connection = wire.Connection(self.gate.address, **options)
        self.addCleanup(connection.close)
        return connection

    def busy(self):
        """A connection whose request the service has and does not answer."""
        connection = self.connect()
        connection.send(wire.message("GET", "/public"))
        service, reader = self.stage.accept()
        reader.request()
        return connection, service

    def idle(self):
        """A connection that is kept open after an answer."""
        connection, service = self.busy()
        service.sendall(upstream.answer())
        self.assertEqual(connection.response().status, 200)
        service.close()
        return connection

    def test_a_full_listener_refuses_and_says_which_limit(self):
        self.begin("limits connections=4")
        busy = [self.busy() for _ in range(4)]
        refused = self.connect()
        self.assertTrue(refused.is_closed())
        line = self.gate.err.wait(lambda line: "limits connections=4 is reached" in line)
        self.assertIn("warn: listener main", line or self.gate.err.text)
        busy[0][1].sendall(upstream.answer())
        self.assertEqual(busy[0][0].response().status, 200)
        busy[0][0].close()
        self.assertTrue(gates.poll(lambda: not self.connect().is_closed(0.1)))
        self.assertEqual(self.gate.readyz(), 200)

    def test_a_full_listener_closes_whoever_has_been_idle_longest(self):
        self.begin("limits connections=3")
        connection, service = self.busy()
        oldest, newer = self.idle(), self.idle()
        fourth, fourth_service = self.busy()
        self.assertTrue(oldest.is_closed())
        self.assertEqual(oldest.buffer, b"")
        for client, peer in ((connection, service), (fourth, fourth_service)):
            peer.sendall(upstream.answer())
            self.assertEqual(client.response().status, 200)
        newer.send(wire.message("GET", "/closed/a"))
        self.check_problem(newer.response(), "not_found")

    def test_an_address_with_its_fill_closes_nobody_else(self):
        self.begin("limits per_address=2")
        other = self.connect(source="127.0.0.8")
        held = [self.connect(source="127.0.0.9") for _ in range(2)]
        for connection in [other, *held]:
            connection.send(wire.message("GET", "/closed/a"))
            self.check_problem(connection.response(), "not_found")
        self.assertTrue(self.connect(source="127.0.0.9").is_closed())
        self.assertTrue(self.gate.err.wait(
            lambda line: "limits per_address=2 is reached by 127.0.0.9" in line))
        for connection in [other, *held]:
            connection.send(wire.message("GET", "/closed/a"))
            self.check_problem(connection.response(), "not_found")


class Descriptors(case.Case):
    CLIENTS = 200

    def test_few_descriptors_refuse_some_serve_the_rest_and_recover(self):
        stage = upstream.Stage()
        self.addCleanup(stage.close)
        self.run_gate(service=stage, prefix=["prlimit", "--nofile=64"])
        clients = [wire.Connection(self.gate.address) for _ in range(self.CLIENTS)]
        for client in clients:
            client.send(wire.message("GET", "/public"))
        self.assertTrue(self.gate.err.wait(lambda line: "RLIMIT_NOFILE" in line and "warn" in line),
                        self.gate.err.text)
        gates.poll(lambda: False, within=1)  # until all are refused that will be
        began, spent = time.monotonic(), self.cpu()
        gates.poll(lambda: False, within=2)
        self.assertLess(self.cpu() - spent, 0.1 * (time.monotonic() - began))
        # Whoever was let in has a connection to the service as well: none of them is refused.
        served = threading.Thread(target=self.serve, args=(stage,), daemon=True)
        served.start()
        answered = refused = 0
        for client in clients:
            try:
                self.assertEqual(client.response().status, 200, self.gate.err.text)
                answered += 1
            except wire.Closed:
                refused += 1
            client.close()
        self.assertGreater(answered, 5)
        self.assertGreater(refused, 100)
        self.assertTrue(gates.poll(self.serves, within=2))
        self.assertTrue(self.gate.is_alive)

    def serves(self):
        try:
            return self.ask("GET", "/closed/a").status == 404
        except wire.Closed:
            return False

    def test_idle_connections_to_services_make_room_for_new_ones(self):
        stages = {name: upstream.Stage() for name in ("service", "second", "third")}
        keepalive = "keepalive 64 idle=60s requests=100"

        def change(settings):
            settings.top.append("loops 1")
            settings.upstream.append(keepalive)
            for name in ("second", "third"):
                settings.extra += [f"upstream {name} {{", f"server 127.0.0.1:{stages[name].port}",
                                   keepalive, "}"]
                settings.routes[f"GET /{name}"] = ["mode off", f"upstream {name}"]
        for stage in stages.values():
            self.addCleanup(stage.close)
        self.run_gate(change, service=stages["service"], prefix=["prlimit", "--nofile=64"])
        clients = [wire.Connection(self.gate.address) for _ in range(14)]
        for name, stage in stages.items():
            for client in clients:
                self.addCleanup(client.close)
                client.send(wire.message("GET", f"/{name}"))
            for service, reader in [stage.accept() for _ in clients]:
                reader.request()
                service.sendall(upstream.answer())
            statuses = [client.response().status for client in clients]
            self.assertEqual(statuses, [200] * len(clients), (name, self.gate.err.text))

    def serve(self, stage):
        while True:
            try:
                service, reader = stage.accept()
                if reader.request():
                    service.sendall(upstream.answer())
            except (OSError, EOFError):
                continue
            except Exception:  # nothing came for long: the test is over
                return

    def cpu(self):
        with open(f"/proc/{self.gate.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Times(case.Case):
    def begin(self, timeouts, **options):
        self.stage = upstream.Stage()
        self.addCleanup(self.stage.close)
        self.run_gate(
            lambda settings: settings.listener.append(f"timeouts {timeouts}"), service=self.stage,
            **options)

    def test_a_client_that_takes_nothing_of_its_answer_is_given_up(self):
        self.begin("write=1s")
        with wire.Connection(self.gate.address, receive_buffer=4096) as connection:
            connection.send(wire.message("GET", "/public"))
            service, reader = self.stage.accept()
            reader.request()
            began = time.monotonic()
            with self.assertRaises(ConnectionError):
                service.sendall(upstream.answer(b"x" * (64 << 20)))
            self.assertLess(time.monotonic() - began, 10)
        self.assertTrue(self.gate.log(lambda entry: entry["target"] == "/public"))

    def test_a_body_that_trickles_is_too_slow(self):
        self.begin("body=1s body_min_rate=1k")
        for body, expected in ((b"x" * 10, 408), (b"x" * 1500, 200)):
            with wire.Connection(self.gate.address) as connection:
                connection.send(wire.message("POST", "/public", [("Content-Length", "9000")]))
                service, reader = self.stage.accept()
                sent = 0
                while sent < 9000 and not connection.buffer:
                    connection.send(body[: 9000 - sent])
                    sent += len(body)
                    if not connection.is_silent(0.3):
                        break
                if expected == 200:
                    self.assertEqual(len(reader.request().body), 9000)
                    service.sendall(upstream.answer())
                answer = connection.response("POST")
                self.assertEqual(answer.status, expected)

    def test_a_head_begun_behind_another_request_has_the_time_of_a_head(self):
        self.begin("header=1s keepalive=30s")
        with wire.Connection(self.gate.address) as connection:
            text = wire.message("GET", "/closed/a")
            connection.send(text + text[:-10])
            self.check_problem(connection.response(), "not_found")
            began = time.monotonic()
            self.check_problem(connection.response(), "request_timeout")
            self.assertLess(time.monotonic() - began, 8)
