"""Which server takes a request: shares, backups, health checks, ejection, places (conf.md §2)."""

import collections
import socket
import struct
import threading
import time

import case
import gate as gates
import test_websocket
import upstream
import wire


class Servers(case.Case):
    """A gate before several services."""

    def run_servers(self, lines=(), marks=("", ""), services=None, loops=1, change=None,
                    environment=None):
        """A gate with a service for each of `marks`, which stand behind its address."""
        self.services = services or [self.recorder() for _ in marks]

        def configure(settings):
            settings.top.append(f"loops {loops}")
            settings.servers = [
                f"127.0.0.1:{service.port} {mark}".strip()
                for service, mark in zip(self.services, marks)
            ]
            settings.upstream = list(lines)
            if change:
                change(settings)
        return self.run_gate(configure, service=self.services[0], environment=environment)

    def counts(self):
        return [len(service.requests) for service in self.services]

    def ask_all(self, count, method="GET", status=200):
        """So many requests on one connection."""
        with wire.Connection(self.gate.address) as connection:
            for number in range(count):
                answer = connection.ask(method, f"/public/{number}")
                self.assertEqual(answer.status, status, answer)

    def said(self, text, within=wire.DEADLINE):
        """Whether the error log has a line with this text."""
        return self.gate.err.wait(lambda line: text in line, within)

    def address(self, number):
        return f"127.0.0.1:{self.services[number].port}"


class Shares(Servers):
    def test_requests_by_weight(self):
        self.run_servers(marks=("weight=5", "", "weight=2"), loops=2)
        self.ask_all(80)
        self.assertEqual(self.counts(), [50, 10, 20])

    def test_least_connections_with_a_slow_server(self):
        release = threading.Event()
        self.addCleanup(release.set)
        self.run_servers(["balance least_connections"], loops=2)
        slow = self.services[0]
        slow.respond = lambda request: release.wait(wire.DEADLINE) and upstream.answer()
        held = []
        for number in range(8):  # as many hang on the slow one as it was given
            connection = wire.Connection(self.gate.address)
            self.addCleanup(connection.close)
            connection.send(wire.message("GET", f"/public/hang/{number}"))
            held.append(connection)
            self.assertTrue(gates.poll(lambda n=number: sum(self.counts()) == n + 1))
        # The first goes anywhere; from then on only the free one has fewer.
        self.assertEqual(self.counts()[0], 1)
        self.ask_all(20)
        self.assertEqual(self.counts(), [1, 27])
        release.set()
        for connection in held:
            self.assertEqual(connection.response().status, 200)

    def test_least_connections_by_weight(self):
        gate_open = threading.Event()
        self.addCleanup(gate_open.set)
        self.run_servers(["balance least_connections"], marks=("weight=3", ""))
        for service in self.services:
            service.respond = lambda request: gate_open.wait(wire.DEADLINE) and upstream.answer()
        for number in range(8):
            connection = wire.Connection(self.gate.address)
            self.addCleanup(connection.close)
            connection.send(wire.message("GET", f"/public/{number}"))
            self.assertTrue(gates.poll(lambda n=number: sum(self.counts()) == n + 1))
        self.assertEqual(self.counts(), [6, 2])

    def test_a_key_stays_on_its_server_and_only_a_lost_share_moves(self):
        self.run_servers(["balance hash key_id", "retry 2"], marks=("", "", ""))
        phones = [self.app().enrolled() for _ in range(12)]

        def owners():
            for service in self.services:
                service.reset()
            for _ in range(2):
                for phone in phones:
                    self.assertEqual(phone.send("POST", "/v1/data/a", b"x").status, 200)
            found = collections.defaultdict(set)
            for number, service in enumerate(self.services):
                for request in service.requests:
                    found[request.get("App-Attest-Verified-Key")].add(number)
            self.assertEqual(len(found), len(phones))
            for key, numbers in found.items():
                self.assertEqual(len(numbers), 1, key)
            return {key: next(iter(numbers)) for key, numbers in found.items()}
        before = owners()
        self.assertEqual(before, owners())
        self.assertGreater(len(set(before.values())), 1, "12 keys on one of 3 servers")
        lost = next(iter(before.values()))
        self.services[lost].close()
        after = owners()
        for key, number in before.items():
            if number == lost:
                self.assertNotEqual(after[key], lost)
            else:
                self.assertEqual(after[key], number)

    def test_a_hash_without_a_verified_key_takes_turns(self):
        self.run_servers(["balance hash key_id"])
        self.ask_all(10)
        self.assertEqual(self.counts(), [5, 5])

    def test_a_backup_serves_only_while_no_primary_can(self):
        ports = [gates.port() for _ in range(3)]
        services = [self.recorder(port=port) for port in ports]
        self.run_servers(["retry 2"], marks=("", "", "backup"), services=services)
        self.ask_all(10)
        self.assertEqual(self.counts(), [5, 5, 0])
        services[0].close()
        self.ask_all(10)
        self.assertEqual(self.counts(), [5, 15, 0])
        services[1].close()
        self.ask_all(10)
        self.assertEqual(self.counts(), [5, 15, 10])
        self.services[0] = self.recorder(port=ports[0])
        self.ask_all(10)
        self.assertEqual(self.counts(), [10, 15, 10])

    def test_an_idle_connection_that_closed_brings_no_backup_in(self):
        self.run_servers(["retry 1"], marks=("", "backup"))
        self.services[0].closes = True
        self.ask_all(50)
        self.assertEqual(self.counts(), [50, 0])

    def test_a_retry_goes_to_another_server(self):
        dead = [gates.port() for _ in range(2)]
        self.run_servers(
            ["retry 2"], marks=("",), change=lambda settings: settings.servers.extend(
                f"127.0.0.1:{port}" for port in dead))
        self.ask_all(30)
        self.assertEqual(self.counts(), [30])
        phone = self.app().enrolled()
        for number in range(6):
            self.assertEqual(phone.send("POST", f"/v1/data/{number}", b"x").status, 200)


class Health(Servers):
    CHECK = "health GET /healthz every=200ms timeout=1s rise=2 fall=3"

    def run_checked(self, lines=(), marks=("", ""), **options):
        """Services that answer a check as `self.healthy` says; their counts leave checks out."""
        self.healthy = [True] * len(marks)
        services = options.pop("services", None) or [self.recorder() for _ in marks]
        for number, service in enumerate(services):
            service.respond = lambda request, number=number: self.respond(request, number)
        return self.run_servers([self.CHECK, *lines], marks, services, **options)

    def respond(self, request, number):
        if request.target == "/healthz" and not self.healthy[number]:
            return upstream.answer(b"no\n", "500 Internal Server Error")
        return upstream.answer()

    def counts(self):
        return [
            sum(request.target != "/healthz" for request in service.requests)
            for service in self.services
        ]

    def checks(self, number):
        return [r for r in self.services[number].requests if r.target == "/healthz"]

    def test_down_after_fall_checks_and_up_after_rise(self):
        self.run_checked()
        self.assertTrue(gates.poll(lambda: self.checks(0) and self.checks(1)))
        self.services[0].reset()
        self.healthy[0] = False
        line = self.said(f"{self.address(0)} is down: answered 500, expected 200")
        self.assertIn("upstream service: ", line or self.gate.err.text)
        # Exactly three, but for those that were on their way and those that came since.
        self.assertTrue(3 <= len(self.checks(0)) < 10, self.checks(0))
        self.ask_all(10)
        self.assertEqual(self.counts(), [0, 10])
        self.services[0].reset()
        self.healthy[0] = True
        self.assertTrue(self.said(f"{self.address(0)} is up"))
        self.assertTrue(2 <= len(self.checks(0)) < 10, self.checks(0))
        self.ask_all(10)
        self.assertEqual(self.counts(), [5, 15])
        said = [line for line in self.gate.err.text.split("\n") if " is down" in line]
        self.assertEqual(len(said), 1, "one line a change")

    def test_a_check_is_a_plain_request_with_the_gates_fields(self):
        self.run_checked(["set_field X-Secret env:GATE_SECRET"], marks=("",),
                         environment={"GATE_SECRET": "word"})
        self.assertTrue(gates.poll(lambda: self.checks(0)))
        request = self.checks(0)[0]
        self.assertEqual((request.method, request.version), ("GET", "HTTP/1.1"))
        self.assertEqual(request.get("Host"), self.address(0))
        self.assertEqual(request.get("X-Secret"), "word")
        self.assertEqual(request.get("Connection"), "close")

    def test_all_down_is_502_at_once_and_a_backup_is_used_before(self):
        self.run_checked(["timeouts connect=5s first_byte=5s idle=5s"], marks=("", "backup"))
        self.healthy[0] = False
        self.assertTrue(self.said(f"{self.address(0)} is down"))
        self.ask_all(5)
        self.assertEqual(self.counts(), [0, 5])
        self.healthy[1] = False
        self.assertTrue(self.said(f"{self.address(1)} is down"))
        answer = self.ask("GET", "/public")
        self.check_problem(answer, "upstream_unavailable")
        self.check_reason(answer, "upstream")
        self.assertTrue(self.said("upstream service: every server is down"))
        self.assertEqual(self.counts(), [0, 5])
        self.healthy[0] = True
        self.assertTrue(self.said(f"{self.address(0)} is up"))
        self.ask_all(5)
        self.assertEqual(self.counts(), [5, 5])

    def test_a_server_that_does_not_answer_or_listen_is_down(self):
        silent = upstream.Stage()
        self.addCleanup(silent.close)
        nobody = gates.port()
        alive = self.recorder()
        self.run_servers(
            ["health GET /healthz every=200ms timeout=100ms fall=2"], marks=("",),
            services=[alive], change=lambda settings: settings.servers.extend(
                (f"127.0.0.1:{silent.port}", f"127.0.0.1:{nobody}")))
        self.assertTrue(self.said(f"127.0.0.1:{silent.port} is down: no answer within"))
        self.assertTrue(self.said(f"127.0.0.1:{nobody} is down: connect: Connection refused"))
        self.ask_all(9)

    def test_checks_are_spread(self):
        services = [self.recorder() for _ in range(12)]
        moments = {}
        for number, service in enumerate(services):
            def note(request, number=number):
                moments.setdefault(number, time.monotonic())
                return upstream.answer()
            service.respond = note
        self.run_servers(
            ["health GET /healthz every=1s timeout=500ms"], marks=[""] * 12, services=services)
        self.assertTrue(gates.poll(lambda: len(moments) == 12))
        spread = max(moments.values()) - min(moments.values())
        self.assertGreater(spread, 0.3, "12 random moments of a second within 0.3 s")


class Ejection(Servers):
    def test_failures_eject_and_time_brings_back(self):
        ports = [gates.port() for _ in range(2)]
        services = [self.recorder(port=port) for port in ports]
        self.run_servers(
            ["eject after=3 within=10s for=3s", "retry 0", "keepalive 0 idle=1s"],
            services=services)
        services[0].close()
        statuses = []
        with wire.Connection(self.gate.address) as connection:
            for number in range(20):
                statuses.append(connection.ask("GET", f"/public/{number}").status)
        self.assertEqual(collections.Counter(statuses), {502: 3, 200: 17})
        self.assertEqual(statuses[6:], [200] * 14)
        self.assertTrue(self.said(f"upstream service: {self.address(0)} is left out for 3"))
        self.services[0] = self.recorder(port=ports[0])
        began = time.monotonic()
        self.assertTrue(gates.poll(
            lambda: self.ask("GET", "/public").status == 200 and self.services[0].requests))
        self.assertLess(time.monotonic() - began, 6)
        self.ask_all(10)

    def test_what_counts_and_what_does_not(self):
        for name, respond, isEjected in (
                ("closed", lambda request: None, True),
                ("malformed", lambda request: b"HTTP/1.1 20 OK\r\n\r\n", True),
                ("cut off", lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", True),
                ("500", lambda request: upstream.answer(status="500 Oops"), False),
                ("503", lambda request: upstream.answer(status="503 Later"), False)):
            with self.subTest(name=name):
                self.run_servers(["eject after=2 within=10s for=30s", "retry 0"])
                self.services[0].respond = respond
                self.services[0].closes = name == "cut off"
                for _ in range(8):
                    try:
                        self.ask("GET", "/public")
                    except wire.Closed:
                        pass
                self.assertEqual(self.counts(), [2, 6] if isEjected else [4, 4])
                self.gate.kill()

    def test_a_late_answer_counts(self):
        self.run_servers(
            ["eject after=2 within=10s for=30s", "retry 0",
             "timeouts connect=2s first_byte=100ms idle=2s"])
        stop = threading.Event()
        self.addCleanup(stop.set)
        self.services[0].respond = lambda request: stop.wait(wire.DEADLINE) and None
        statuses = [self.ask("GET", "/public").status for _ in range(8)]
        self.assertEqual(collections.Counter(statuses), {504: 2, 200: 6})

    def test_the_last_server_is_not_left_out(self):
        port = gates.port()
        service = self.recorder(port=port)
        self.run_servers(
            ["eject after=1 within=10s for=1h", "retry 0"], marks=("",), services=[service])
        service.close()
        self.assertEqual(self.ask("GET", "/public").status, 502)
        self.assertTrue(self.said("is left out for"))
        self.services[0] = self.recorder(port=port)
        self.assertEqual(self.ask("GET", "/public").status, 200)


class Places(Servers):
    """`max_active`: one service that answers when the test says so."""

    def run_limited(self, limit, loops=1, change=None):
        self.stage = upstream.Stage()
        self.addCleanup(self.stage.close)
        self.run_servers([f"max_active {limit}"], marks=("",), services=[self.stage],
                         loops=loops, change=change)

    def open(self, target="/public", method="GET", fields=(), body=None):
        """A request on its way, on a connection of its own."""
        connection = wire.Connection(self.gate.address)
        self.addCleanup(connection.close)
        connection.send(wire.message(method, target, fields, body))
        return connection

    def serve(self, service, reader):
        """Answers one request; its target."""
        target = reader.request().target
        service.sendall(upstream.answer(fields=["Connection: close"]))
        service.close()
        return target

    def check_none_connects(self):
        self.assertTrue(self.stage.waiting.empty())

    def test_first_come_first_served(self):
        self.run_limited("1 queue=10 wait=10s")
        first = self.open("/public/first")
        held = self.stage.accept()
        waiting = []
        for number in range(6):
            waiting.append(self.open(f"/public/{number}"))
            # One at a time, so that they come in this order.
            self.assertTrue(waiting[-1].is_silent(0.05))
        self.check_none_connects()
        self.serve(*held)
        self.assertEqual(first.response().status, 200)
        for number, connection in enumerate(waiting):
            target = self.serve(*self.stage.accept())
            self.assertEqual(target, f"/public/{number}")
            self.assertEqual(connection.response().status, 200)
        self.check_none_connects()

    def test_over_the_queue_and_over_the_wait_is_503(self):
        self.run_limited("2 queue=1 wait=500ms")
        self.open(), self.open()
        held = [self.stage.accept(), self.stage.accept()]
        began = time.monotonic()
        late = self.open("/public/late")
        self.assertTrue(late.is_silent(0.05))
        over = self.open("/public/over")
        answer = over.response()
        self.assertLess(time.monotonic() - began, 0.45)
        self.check_problem(answer, "retry_later")
        self.check_reason(answer, "upstream")
        self.check_problem(late.response(), "retry_later")
        self.assertGreater(time.monotonic() - began, 0.45)
        self.assertTrue(self.said("upstream service: no place within max_active"))
        for service, reader in held:
            self.serve(service, reader)
        last = self.open("/public/last")
        self.assertEqual(self.serve(*self.stage.accept()), "/public/last")
        self.assertEqual(last.response().status, 200)
        self.check_none_connects()

    def test_a_client_that_leaves_frees_its_place(self):
        self.run_limited("1 queue=2 wait=10s")
        holder = self.open("/public/holder")
        service, _ = self.stage.accept()
        for reset in (False, True):
            with self.subTest(reset=reset):
                gone = [self.open("/public/gone"), self.open("/public/gone")]
                self.check_problem(self.open("/public/over").response(), "retry_later")
                for connection in gone:
                    if reset:
                        connection.socket.setsockopt(
                            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    connection.close()
                    self.assertIsNotNone(self.gate.log(
                        lambda entry: entry["target"] == "/public/gone"))
                # The line is empty again: two more find room, in a moment.
                self.assertTrue(gates.poll(self.has_room))
        # One that leaves while it is served gives its place back as well.
        holder.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        holder.close()
        next_one = self.open("/public/next")
        self.assertEqual(self.serve(*self.stage.accept()), "/public/next")
        self.assertEqual(next_one.response().status, 200)
        service.close()

    def has_room(self):
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message("GET", "/public/probe"))
            return connection.is_silent(0.1)

    def test_a_tunnel_keeps_its_place_until_it_ends(self):
        self.run_limited("1 queue=0", change=test_websocket.routes)
        tunnel = self.open("/live/a", fields=test_websocket.OPENING)
        service, reader = self.stage.accept()
        reader.until(b"\r\n\r\n")
        service.sendall(test_websocket.switch())
        self.assertEqual(tunnel.read_head().status, 101)
        for _ in range(3):
            self.check_problem(self.ask("GET", "/public"), "retry_later")
        tunnel.close()
        service.close()
        self.assertIsNotNone(self.gate.log(lambda entry: entry["target"] == "/live/a"))
        last = self.open("/public/last")
        self.assertEqual(self.serve(*self.stage.accept()), "/public/last")
        self.assertEqual(last.response().status, 200)

    def test_a_proof_is_not_spent_where_the_place_comes_first(self):
        self.run_limited("1 queue=0", loops=2)
        phone = self.app().enrolled()
        signed = phone.prove("POST", "/v1/signed/a", b"x", phone.challenge(), binding="request")
        other = phone.prove("POST", "/v1/data/a", b"x", phone.challenge())
        self.open("/public/holder")
        held = self.stage.accept()
        with wire.Connection(self.gate.address) as connection:
            for _ in range(3):
                answer = connection.ask("POST", "/v1/signed/a", signed, b"x")
                self.check_problem(answer, "retry_later")
                self.check_reason(answer, "upstream")
            # Where the commit came first, the proof is spent.
            self.check_problem(connection.ask("POST", "/v1/data/a", other, b"x"), "retry_later")
            self.check_problem(
                connection.ask("POST", "/v1/data/a", other, b"x"), "challenge_required")
        self.check_none_connects()
        self.serve(*held)
        again = self.open("/v1/signed/a", "POST", self.renewed(phone), b"x")
        self.assertEqual(self.serve(*self.stage.accept()), "/v1/signed/a")
        self.assertEqual(again.response("POST").status, 200)

    def renewed(self, phone):
        return phone.prove("POST", "/v1/signed/a", b"x", phone.challenge(), binding="request")

    def test_the_same_proof_passes_once_there_is_a_place(self):
        self.run_limited("1 queue=0")
        phone = self.app().enrolled()
        signed = self.renewed(phone)
        self.open("/public/holder")
        held = self.stage.accept()
        answer = self.ask("POST", "/v1/signed/a", signed, b"x")
        self.check_problem(answer, "retry_later")
        self.serve(*held)
        passed = self.open("/v1/signed/a", "POST", signed, b"x")
        self.assertEqual(self.serve(*self.stage.accept()), "/v1/signed/a")
        self.assertEqual(passed.response("POST").status, 200)
        self.check_problem(self.ask("POST", "/v1/signed/a", signed, b"x"), "challenge_required")

    def test_a_refused_commit_gives_its_place_back(self):
        self.run_limited("1 queue=0")
        phone = self.app().enrolled()
        signed = self.renewed(phone)
        first = self.open("/v1/signed/a", "POST", signed, b"x")
        self.serve(*self.stage.accept())
        self.assertEqual(first.response("POST").status, 200)
        for _ in range(3):
            answer = self.ask("POST", "/v1/signed/a", signed, b"x")
            self.check_problem(answer, "challenge_required")
            wrong = self.renewed(phone)
            self.check_problem(self.ask("POST", "/v1/signed/a", wrong, b"y"), "rejected")
        last = self.open("/public/last")
        self.assertEqual(self.serve(*self.stage.accept()), "/public/last")
        self.assertEqual(last.response().status, 200)

    def test_a_streamed_body_waits_with_its_request(self):
        self.run_limited("1 queue=5 wait=10s")
        self.open("/public/holder")
        held = self.stage.accept()
        body = bytes(range(256)) * 2048
        sender = wire.Connection(self.gate.address)
        self.addCleanup(sender.close)
        data = wire.message("POST", "/public/upload", body=body)
        thread = threading.Thread(target=sender.send, args=(data,))
        thread.start()
        self.addCleanup(thread.join, wire.DEADLINE)
        self.assertTrue(sender.is_silent(0.2))
        self.serve(*held)
        service, reader = self.stage.accept()
        request = reader.request()
        self.assertEqual((request.target, request.body == body), ("/public/upload", True))
        service.sendall(upstream.answer())
        self.assertEqual(sender.response("POST").status, 200)

    def test_many_clients_over_two_loops_lose_no_place(self):
        service = self.recorder()
        lock, active, most = threading.Lock(), [0], [0]

        def respond(request):
            with lock:
                active[0] += 1
                most[0] = max(most[0], active[0])
            try:
                return upstream.answer()
            finally:
                with lock:
                    active[0] -= 1
        service.respond = respond
        self.run_servers(["max_active 3 queue=1000 wait=30s"], marks=("",), services=[service],
                         loops=2)
        statuses = collections.Counter()

        def client():
            mine = collections.Counter()
            with wire.Connection(self.gate.address, timeout=60) as connection:
                for number in range(25):
                    mine[connection.ask("GET", f"/public/{number}").status] += 1
            with lock:
                statuses.update(mine)
        threads = [threading.Thread(target=client) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(statuses, {200: 500})
        self.assertLessEqual(most[0], 3)


class Length(Servers):
    """`request length`: a body of unknown length is held, and bounded, before it goes up."""

    def run_length(self, lines=("body max=256k memory=16k",)):
        def change(settings):
            settings.routes["* /v1/watched/*"] = ["mode monitor", *lines]
            settings.routes["* /open/*"] = ["mode off", *lines]
        self.run_servers(["request length"], marks=("",), change=change)

    def test_a_chunked_body_goes_up_with_its_length(self):
        self.run_length()
        for target in ("/open/a", "/v1/watched/a"):
            for body in (b"", b"x", b"y" * 10_000, bytes(range(256)) * 800):
                with self.subTest(target=target, length=len(body)):
                    self.services[0].reset()
                    answer = self.ask("POST", target, body=body, chunked=True)
                    self.assertEqual(answer.status, 200, answer)
                    request = self.services[0].wait(1)[0]
                    self.assertEqual(request.get("Content-Length"), str(len(body)))
                    self.assertIsNone(request.get("Transfer-Encoding"))
                    self.assertEqual(request.body, body)

    def test_a_watched_body_that_is_judged_loses_nothing_where_it_outgrows_the_memory(self):
        # An envelope is judged when it is complete; its first piece is too much already, or a
        # later one is.
        self.run_length(("body max=256k memory=1k", "bind envelope"))
        for size in (500, 1024, 1025, 5000, 100_000, 200_000):
            body = bytes(range(251)) * (size // 251) + b"z" * (size % 251)
            for pieces in ([body], [body[:100], body[100:]]):
                with self.subTest(size=size, pieces=len(pieces)):
                    self.services[0].reset()
                    with wire.Connection(self.gate.address) as connection:
                        connection.send(wire.message(
                            "POST", "/v1/watched/a", [("Transfer-Encoding", "chunked")]))
                        for piece in pieces:
                            connection.send(wire.chunk(piece).removesuffix(b"0\r\n\r\n"))
                            gates.pass_time(0.02)
                        connection.send(b"0\r\n\r\n")
                        self.assertEqual(connection.response("POST").status, 200)
                    request = self.services[0].wait(1)[0]
                    self.assertEqual(request.get("Content-Length"), str(size))
                    self.assertEqual(request.body, body)
        answer = self.ask("POST", "/v1/watched/a", body=b"x" * 300_000, chunked=True)
        self.check_problem(answer, "too_large", 413)

    def test_body_max_binds(self):
        self.run_length()
        for target in ("/open/a", "/v1/watched/a"):
            for chunked in (True, False):
                with self.subTest(target=target, chunked=chunked):
                    answer = self.ask("POST", target, body=b"x" * 300_000, chunked=chunked)
                    self.check_problem(answer, "too_large", 413)
        self.assertEqual(self.services[0].requests, [])

    def test_a_length_that_is_known_streams(self):
        self.run_length()
        with wire.Connection(self.gate.address) as connection:
            body = b"x" * 100_000
            data = wire.message("POST", "/open/a", body=body)
            connection.send(data[:-1])
            self.assertTrue(gates.poll(lambda: len(self.services[0].raw) > 50_000))
            connection.send(data[-1:])
            self.assertEqual(connection.response("POST").status, 200)
        self.assertEqual(self.services[0].requests[0].body, body)

    def test_a_client_that_waits_is_asked_for_its_body(self):
        self.run_length()
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message(
                "POST", "/open/a", [("Expect", "100-continue"),
                                    ("Transfer-Encoding", "chunked")]))
            self.assertEqual(connection.head()[1], 100)
            self.assertEqual(self.services[0].raw, b"")
            connection.send(wire.chunk(b"hello"))
            self.assertEqual(connection.response("POST").status, 200)
        request = self.services[0].requests[0]
        self.assertEqual((request.body, request.get("Expect")), (b"hello", None))

    def test_without_it_a_chunked_body_streams_unbounded(self):
        self.run_servers([], marks=("",), change=lambda settings: settings.routes.update(
            {"* /open/*": ["mode off", "body max=16k memory=1k"]}))
        answer = self.ask("POST", "/open/a", body=b"x" * 100_000, chunked=True)
        self.assertEqual(answer.status, 200)
        request = self.services[0].requests[0]
        self.assertEqual(request.get("Transfer-Encoding"), "chunked")
