"""Services that fail, in every way a service can (protocol.md §5, threats: the response side)."""

import os
import signal
import socket
import subprocess
import time

import case
import gate as gates
import upstream
import wire


class Unreachable(case.Case):
    def check_fast(self, code, within, **options):
        began = time.monotonic()
        answer = self.ask("GET", "/public", **options)
        self.check_problem(answer, code)
        self.assertLess(time.monotonic() - began, within)
        self.check_reason(answer, "upstream")

    def test_nobody_listens(self):
        free = gates.port()
        self.run_gate(lambda settings: settings.__setattr__("servers", [f"127.0.0.1:{free}"]))
        self.check_fast("upstream_unavailable", 5)
        phone = self.app().enrolled()
        self.check_problem(phone.send("POST", "/v1/data/a", b"x"), "upstream_unavailable")
        self.assertEqual(self.gate.readyz(), 200)
        back = self.recorder(port=free)
        self.assertEqual(phone.send("POST", "/v1/data/a", b"x").status, 200)
        self.assertEqual(len(back.requests), 1)

    def test_connecting_takes_too_long(self):
        full = socket.socket()
        self.addCleanup(full.close)
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = []
        for _ in range(4):  # more than the backlog holds, so that the next one gets no answer
            connection = socket.socket()
            self.addCleanup(connection.close)
            connection.setblocking(False)
            connection.connect_ex(full.getsockname())
            waiting.append(connection)

        def change(settings):
            settings.servers = [f"127.0.0.1:{full.getsockname()[1]}"]
            settings.upstream = ["timeouts connect=300ms first_byte=30s idle=60s", "retry 0"]
        self.run_gate(change)
        began = time.monotonic()
        answer = self.ask("GET", "/public")
        self.assertIn(answer.code, ("upstream_unavailable", "upstream_timeout"), answer)
        self.assertLess(time.monotonic() - began, 5)


class Names(case.Case):
    """A hosts file of the gate's own, which the test rewrites while the gate runs."""

    def setUp(self):
        self.hosts = os.path.join(self.temporary(), "hosts")
        mounted = f'mount --bind {self.hosts} /etc/hosts && exec "$@"'
        self.inside = ["unshare", "-rm", "sh", "-c", mounted, "-"]
        self.point()
        if subprocess.run([*self.inside, "true"], capture_output=True, check=False).returncode:
            self.skipTest("no mount namespace of one's own here")

    def point(self, **names):
        """Writes the hosts file: the same file, as it is mounted."""
        with open(self.hosts, "w", encoding="utf-8") as file:
            for name, addresses in names.items():
                file.writelines(f"{address} {name}.test\n" for address in addresses.split())

    def run_named(self, servers, lines=()):
        service = self.recorder(host="0.0.0.0")

        def change(settings):
            settings.top.append("loops 1")
            settings.servers = [f"{server}:{service.port}" for server in servers]
            settings.upstream = ["resolve every=1s", "retry 0", *lines]
        self.run_gate(change, service=service, prefix=self.inside)

    def status_becomes(self, status):
        return gates.poll(lambda: self.ask("GET", "/public").status == status)

    def test_a_name_moves(self):
        self.point(service="127.0.0.9")
        service = self.recorder()

        def change(settings):
            settings.servers = [f"service.test:{service.port}"]
            settings.upstream = ["resolve every=1s", "retry 0"]
        self.run_gate(change, service=service, prefix=self.inside)
        for address, status in (("127.0.0.9", 502), ("127.0.0.1", 200), ("127.0.0.9", 502)):
            self.point(service=address)
            self.assertTrue(self.status_becomes(status), address)

    def test_a_name_that_is_not_there_at_the_start(self):
        self.run_named(["service.test"])
        answer = self.ask("GET", "/public")
        self.check_problem(answer, "upstream_unavailable")
        self.check_reason(answer, "upstream")
        said = self.gate.err.wait(lambda line: "no address is known" in line)
        self.assertIn("upstream service: no address is known", said or "")
        self.point(service="127.0.0.1")
        self.assertTrue(self.status_becomes(200))
        self.assertTrue(self.gate.err.wait(lambda line: "resolves again" in line))
        lines = self.gate.err.text.split("\n")
        missed = [line for line in lines if 'upstream service: name "service.test" does' in line]
        self.assertEqual(len(missed), 1, "said once, not every round")

    def test_a_name_that_goes_keeps_its_last_addresses_and_its_neighbours_theirs(self):
        self.point(one="127.0.0.2 127.0.0.3", two="127.0.0.4")
        self.run_named(["one.test", "two.test", "127.0.0.5"])

        def turns():
            return [self.gate.logged(self.ask("GET", "/public"))["upstream"].split(":")[0]
                    for _ in range(8)]
        everyone = [f"127.0.0.{number}" for number in (2, 3, 4, 5)]
        self.assertEqual(sorted(turns()), sorted(2 * everyone))
        self.point(two="127.0.0.4")
        self.assertTrue(self.gate.err.wait(lambda line: '"one.test" does not resolve' in line))
        self.assertEqual(sorted(turns()), sorted(2 * everyone))
        self.point(one="127.0.0.6", two="127.0.0.4")
        self.assertTrue(self.gate.err.wait(lambda line: "resolves again" in line))
        rest = ["127.0.0.4", "127.0.0.5", "127.0.0.6"]
        self.assertEqual(set(turns()), set(rest))

    def test_a_health_check_follows_the_addresses(self):
        self.point(service="127.0.0.2")
        self.run_named(["service.test"], ["health GET /healthz every=200ms fall=1"])
        self.assertTrue(self.service.wait_until(lambda: self.service.requests))
        self.point(service="127.0.0.2 127.0.0.3")
        reached = set()

        def note(request):
            reached.add(request.get("Host"))
            return upstream.answer()
        self.service.respond = note
        self.assertTrue(self.service.wait_until(lambda: "127.0.0.3" in self.service.locals))
        self.point(service="127.0.0.3")
        self.assertTrue(gates.poll(lambda: self.is_left_alone("127.0.0.2")))
        self.assertEqual(reached, {f"service.test:{self.service.port}"})

    def is_left_alone(self, address):
        """Whether three checks of another came without one of this."""
        self.service.locals.clear()
        self.service.wait_until(lambda: len(self.service.locals) >= 4)
        return address not in self.service.locals


class Slow(case.Case):
    def test_the_first_byte_is_late(self):
        stage = upstream.Stage()
        self.addCleanup(stage.close)

        def change(settings):
            settings.upstream = ["timeouts connect=2s first_byte=500ms idle=60s"]
        self.run_gate(change, service=stage)
        for fields in ((), self.proof()):
            target = "/v1/data/a" if fields else "/public"
            began = time.monotonic()
            answer = self.ask("GET", target, fields)
            self.check_problem(answer, "upstream_timeout")
            self.assertLess(time.monotonic() - began, 5)

    def proof(self):
        phone = self.app().enrolled()
        return phone.prove("GET", "/v1/data/a", None, phone.challenge())

    def test_an_answer_stalls(self):
        stage = upstream.Stage()
        self.addCleanup(stage.close)

        def change(settings):
            settings.upstream = ["timeouts connect=2s first_byte=5s idle=500ms"]
        self.run_gate(change, service=stage)
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message("GET", "/public"))
            service, reader = stage.accept()
            reader.until(b"\r\n\r\n")
            service.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
            self.assertEqual(connection.read_head().status, 200)
            with self.assertRaises(wire.Closed):
                connection.take(10)


class Reuse(case.Case):
    """A service that closes an idle connection just when it is used again."""

    def setUp(self):
        self.stage = upstream.Stage()
        self.addCleanup(self.stage.close)
        self.run_gate(lambda settings: settings.top.append("loops 1"), service=self.stage)

    def idle(self, connection):
        """One exchange; the service's connection that is idle then."""
        connection.send(wire.message("GET", "/public"))
        service, reader = self.stage.accept()
        reader.until(b"\r\n\r\n")
        service.sendall(upstream.answer())
        self.assertEqual(connection.response().status, 200)
        return service, reader

    def test_an_idempotent_request_is_sent_again(self):
        for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
            body = b"x" if method == "PUT" else None
            with self.subTest(method=method), wire.Connection(self.gate.address) as connection:
                service, reader = self.idle(connection)
                connection.send(wire.message(method, "/public/again", body=body))
                reader.until(b"\r\n\r\n")
                service.close()
                second, reader = self.stage.accept()
                request = reader.request()
                self.assertEqual((request.method, request.target), (method, "/public/again"))
                self.assertEqual(request.body, body or b"")
                data = upstream.answer(b"" if method == "HEAD" else b"ok\n")
                second.sendall(data)
                self.assertEqual(connection.response(method).status, 200)
                second.close()

    def test_a_signed_idempotent_request_is_sent_again_with_its_proof_spent(self):
        phone = self.app().enrolled()
        with wire.Connection(self.gate.address) as connection:
            service, reader = self.idle(connection)
            proof = phone.prove("PUT", "/v1/data/a", b"body", phone.challenge())
            connection.send(wire.message("PUT", "/v1/data/a", proof, b"body"))
            reader.request()
            service.close()
            second, reader = self.stage.accept()
            self.assertEqual(reader.request().body, b"body")
            second.sendall(upstream.answer())
            self.assertEqual(connection.response().status, 200)
            answer = connection.ask("PUT", "/v1/data/a", proof, b"body")
            self.check_problem(answer, "challenge_required")

    def test_a_request_that_is_not_idempotent_is_not_sent_twice(self):
        phone = self.app().enrolled()
        for target, body in (
                ("/public/once", b"x"), ("/public/once", b""), ("/v1/data/once", b"x")):
            with self.subTest(target=target, body=body):
                fields = ()
                if target != "/public/once":
                    fields = phone.prove("POST", target, body, phone.challenge())
                with wire.Connection(self.gate.address) as connection:
                    service, reader = self.idle(connection)
                    connection.send(wire.message("POST", target, fields, body))
                    reader.request()
                    service.close()
                    self.check_problem(connection.response("POST"), "upstream_unavailable")
                self.assertTrue(self.stage.waiting.empty())

    def test_a_connection_closed_while_idle_is_not_used(self):
        with wire.Connection(self.gate.address) as connection:
            for method in ("PUT", "GET", "PUT"):
                service, _ = self.idle(connection)
                service.close()
                connection.send(wire.message(method, "/public", body=b"x"))
                service, reader = self.stage.accept()
                reader.request()
                service.sendall(upstream.answer())
                self.assertEqual(connection.response(method).status, 200)
                service.close()

    def test_what_a_service_says_unasked_is_no_answer(self):
        # While the gate stands still, the bytes and the next request arrive together.
        for method in ("GET", "PUT", "POST"):
            with self.subTest(method=method), wire.Connection(self.gate.address) as connection:
                service, _ = self.idle(connection)
                self.gate.signal(signal.SIGSTOP)
                connection.send(wire.message(method, "/public/next", body=b"x"))
                service.sendall(upstream.answer(b"stray"))
                self.gate.signal(signal.SIGCONT)
                second, reader = self.stage.accept()
                self.assertEqual(reader.request().target, "/public/next")
                second.sendall(upstream.answer(b"asked"))
                self.assertEqual(connection.response(method).body, b"asked")
                second.close()

    def test_a_first_use_that_fails_is_not_repeated(self):
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message("GET", "/public"))
            service, reader = self.stage.accept()
            reader.request()
            service.close()
            self.check_problem(connection.response(), "upstream_unavailable")


class Closing(case.SharedGate):
    def test_a_service_that_closes_after_each_answer(self):
        self.service.closes = True
        with wire.Connection(self.gate.address) as connection:
            for number in range(200):
                self.assertEqual(connection.ask("GET", f"/public/{number}").status, 200)

    def test_connections_are_used_again(self):
        before = self.service.connections
        with wire.Connection(self.gate.address) as connection:
            for _ in range(50):
                self.assertEqual(connection.ask("GET", "/public").status, 200)
        self.assertLessEqual(self.service.connections - before, 1)


class Pool(case.Case):
    def test_a_connection_carries_so_many_requests(self):
        def change(settings):
            settings.upstream = ["keepalive 8 idle=4s requests=3"]
        self.run_gate(change)
        with wire.Connection(self.gate.address) as connection:
            for _ in range(9):
                self.assertEqual(connection.ask("GET", "/public").status, 200)
        self.assertEqual(self.service.connections, 3)

    def test_an_idle_connection_is_closed_in_time(self):
        def change(settings):
            settings.upstream = ["keepalive 8 idle=500ms requests=1000"]
        self.run_gate(change)
        self.assertEqual(self.ask("GET", "/public").status, 200)
        self.assertTrue(self.service.wait_until(lambda: not self.service.open, 5))

    def test_servers_take_turns(self):
        other = self.recorder()

        def change(settings):
            settings.top.append("loops 1")
            settings.servers.append(f"127.0.0.1:{other.port}")
        self.run_gate(change)
        with wire.Connection(self.gate.address) as connection:
            for _ in range(10):
                self.assertEqual(connection.ask("GET", "/public").status, 200)
        self.assertEqual((len(self.service.requests), len(other.requests)), (5, 5))

    def test_another_server_is_tried_when_one_cannot_be_reached(self):
        def change(settings):
            settings.servers.append(f"127.0.0.1:{gates.port()}")
        self.run_gate(change)
        phone = self.app().enrolled()
        for number in range(10):
            self.assertEqual(self.ask("POST", "/public", body=b"x").status, 200)
            self.assertEqual(phone.send("POST", f"/v1/data/{number}", b"x").status, 200)
        self.assertEqual(len(self.service.requests), 20)

    def test_a_unix_socket_and_a_name(self):
        path = os.path.join(self.temporary(), "service.sock")
        service = self.recorder(address=path)

        def change(settings):
            settings.servers = [f"unix:{path}"]
        self.run_gate(change, service=service)
        self.assertEqual(self.ask("GET", "/public").status, 200)
        named = self.recorder()

        def rename(settings):
            settings.servers = [f"localhost:{named.port}"]
        self.run_gate(rename, service=named)
        self.assertEqual(self.ask("GET", "/public").status, 200)


class Faulty(case.SharedGate):
    """Answers that HTTP does not allow, or that two could read differently: 502."""

    @classmethod
    def configure(cls, settings):
        settings.upstream = ["timeouts connect=2s first_byte=2s idle=2s", "retry 0"]

    def test_faulty_answers_are_refused(self):
        for text in (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
            "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX : a\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX: a\rY: b\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n X: a\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 999x\r\n\r\n",
            "HTTP/2 200 OK\r\nContent-Length: 0\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "\0\0\0",
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 9 + "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\n" + "X: " + "a" * 200_000 + "\r\n\r\n",
        ):
            with self.subTest(text=text[:60]):
                self.service.respond = lambda request, text=text: text.encode("latin-1")
                answer = self.ask("GET", "/public")
                self.check_problem(answer, "upstream_unavailable")
                self.check_reason(answer, "upstream")
                self.service.drop()

    def test_what_comes_behind_an_answer_reaches_nobody(self):
        self.service.respond = lambda request: (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother")
        for _ in range(20):
            answer = self.ask("GET", "/public")
            self.assertEqual((answer.status, answer.body), (200, b"ok"), answer)

    def test_answers_without_a_body(self):
        for text, method in (
            ("HTTP/1.1 204 No Content\r\n\r\n", "GET"),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: \"a\"\r\n\r\n", "GET"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HEAD"),
        ):
            with self.subTest(text=text), wire.Connection(self.gate.address) as connection:
                self.service.respond = lambda request, text=text: text.encode()
                for _ in range(3):
                    answer = connection.ask(method, "/public")
                    self.assertEqual(answer.status, int(text.split()[1]))
                    self.assertEqual(answer.body, b"")
                if method == "HEAD" and "Length" in text:
                    self.assertEqual(answer.get("Content-Length"), "5")

    def test_interim_answers(self):
        self.service.respond = lambda request: (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
            + upstream.answer())
        answer = self.ask("GET", "/public")
        self.assertEqual((answer.status, answer.interim), (200, [103]))
        text = f"GET /public HTTP/1.0\r\nHost: {gates.HOST}\r\n\r\n"
        self.assertEqual(self.raw(text).interim, [])

    def test_hop_by_hop_fields_of_an_answer_stay_behind(self):
        self.service.respond = lambda request: upstream.answer(fields=[
            "Connection: close, X-Named", "X-Named: gone", "Keep-Alive: timeout=5",
            "Proxy-Authenticate: x", "Set-Cookie: a=b", "Set-Cookie: c=d", "x-OWN: kept"])
        with wire.Connection(self.gate.address) as connection:
            answer = connection.ask("GET", "/public")
            self.assertEqual(answer.all("X-Named") + answer.all("Keep-Alive"), [])
            self.assertEqual(answer.all("Set-Cookie"), ["a=b", "c=d"])
            self.assertIn(("x-OWN", "kept"), answer.fields)
            self.assertEqual(connection.ask("GET", "/public").status, 200)

    def test_statuses_and_bodies_pass_as_they_are(self):
        for status in (200, 201, 206, 301, 400, 401, 404, 416, 418, 429, 500, 503, 599):
            self.service.respond = lambda request, status=status: upstream.answer(
                b"<p>" + request.target.encode(), f"{status} Some Reason")
            answer = self.ask("GET", "/public?x")
            self.assertEqual((answer.status, answer.body), (status, b"<p>/public?x"))
            self.assertTrue(answer.get("X-Request-Id"))
