"""WebSockets: the handshake is judged like any request, the tunnel only after a right 101."""

import base64
import hashlib
import json
import os
import select
import signal
import socket
import ssl
import threading
import time

import case
import gate as gates
import pki
import secure
import upstream
import websockets.exceptions
import websockets.sync.client
import websockets.sync.server
import wire

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
MIB = 1 << 20
OPENING = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
           ("Sec-WebSocket-Key", KEY)]


def accept(key=KEY):
    guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    return base64.b64encode(hashlib.sha1((key + guid).encode()).digest()).decode()


def switch(key=KEY, **changes):
    """The bytes of a 101; a change to None leaves the field out."""
    fields = {"Upgrade": "websocket", "Connection": "Upgrade",
              "Sec_WebSocket_Accept": accept(key), **changes}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()
             if value is not None]
    return ("\r\n".join(["HTTP/1.1 101 Switching Protocols", *lines]) + "\r\n\r\n").encode()


def routes(settings):
    settings.routes["GET /live/*"] = ["mode off", "upgrade websocket"]
    settings.routes["* /any/*"] = ["mode off", "upgrade websocket"]
    settings.routes["GET /v1/live/*"] = ["upgrade websocket"]
    settings.routes["GET /v1/watched-live/*"] = ["mode monitor", "upgrade websocket"]


class Peers(case.Case):
    """A real client and a real server with the gate between them."""

    def setUp(self):
        self.closes = []
        self.heads = []
        self.server = websockets.sync.server.serve(
            self.handle, "127.0.0.1", 0, max_size=None, compression=None)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.shutdown)
        stage = upstream.Stage()  # only its port is in the way
        self.addCleanup(stage.close)

        def change(settings):
            routes(settings)
            settings.servers = [f"127.0.0.1:{self.server.socket.getsockname()[1]}"]
        self.run_gate(change, service=stage)

    def handle(self, connection):
        self.heads.append(connection.request)
        try:
            for message in connection:
                if message == "close me":
                    return connection.close(4001, "as asked")
                connection.send(message)
        except websockets.exceptions.ConnectionClosed:
            pass  # with a code that is looked at below
        finally:
            self.closes.append((connection.close_code, connection.close_reason))

    def connect(self, path="/live/a", headers=()):
        sock = socket.create_connection(self.gate.address)
        self.addCleanup(sock.close)
        return websockets.sync.client.connect(
            f"ws://{gates.HOST}{path}", sock=sock, additional_headers=list(headers),
            max_size=None, compression=None, open_timeout=wire.DEADLINE)

    def test_messages_of_every_size_come_back(self):
        with self.connect() as client:
            for size in (0, 1, 125, 126, 65535, 65536, 100_000, MIB):
                message = os.urandom(size)
                client.send(message)
                self.assertEqual(client.recv(wire.DEADLINE), message, size)
                client.send("x" * size)
                self.assertEqual(client.recv(wire.DEADLINE), "x" * size)

    def test_ten_thousand_messages(self):
        count = 10_000
        with self.connect() as client:
            def send():
                for number in range(count):
                    client.send(str(number))
            sender = threading.Thread(target=send, daemon=True)
            sender.start()
            for number in range(count):
                self.assertEqual(client.recv(wire.DEADLINE), str(number))
            sender.join(wire.DEADLINE)

    def test_close_codes_pass_both_ways(self):
        with self.connect() as client:
            client.send("close me")
            with self.assertRaises(websockets.exceptions.ConnectionClosedError) as found:
                client.recv(wire.DEADLINE)
            self.assertEqual((found.exception.rcvd.code, found.exception.rcvd.reason),
                             (4001, "as asked"))
        with self.connect() as client:
            client.close(4002, "enough")
        self.assertTrue(gates.poll(lambda: (4002, "enough") in self.closes), self.closes)

    def test_a_proof_covers_the_handshake(self):
        phone = self.app().enrolled()
        path = "/v1/live/a?x=1"
        with self.assertRaises(websockets.exceptions.InvalidStatus) as found:
            self.connect(path)
        self.assertEqual(found.exception.response.status_code, 401)
        self.assertEqual(self.heads, [])
        proof = phone.prove("GET", path, None, phone.challenge())
        with self.connect(path, proof) as client:
            client.send("hello")
            self.assertEqual(client.recv(wire.DEADLINE), "hello")
            self.assertTrue(client.response.headers["App-Attest-Next-Challenge"])
        head = self.heads[0]
        self.assertEqual(head.path, path)
        self.assertEqual(head.headers["App-Attest-Verdict"], "verified")
        with self.assertRaises(websockets.exceptions.InvalidStatus):
            self.connect(path, proof)
        self.assertEqual(len(self.heads), 1)

    def test_the_log_has_the_whole_tunnel(self):
        with self.connect() as client:
            client.send("x" * 10_000)
            client.recv(wire.DEADLINE)
            identifier = client.response.headers["X-Request-Id"]
        entry = self.gate.log(lambda entry: entry.get("request_id") == identifier)
        self.assertEqual((entry["status"], entry["verdict"]), (101, "off"))
        self.assertGreater(entry["bytes_in"], 10_000)
        self.assertGreater(entry["bytes_out"], 10_000)
        self.assertIn("upstream", entry)
        self.assertNotIn("reason", entry)


class Handshakes(case.SharedGate):
    """What is no whole handshake goes up as a plain request, or not at all."""

    @classmethod
    def configure(cls, settings):
        routes(settings)

    def check_plain(self, method, target, fields):
        self.service.reset()
        request = self.check_upstream(self.ask(method, target, fields))
        self.assertEqual(request.all("Upgrade"), [])
        self.assertEqual(request.all("Connection"), [])

    def test_a_handshake_that_is_not_whole(self):
        changes = [
            ("Connection", "keep-alive"), ("Upgrade", "h2c"), ("Upgrade", "websocket, h2c"),
            ("Upgrade", "foo"), ("Sec-WebSocket-Version", "999"), ("Sec-WebSocket-Version", "8"),
            ("Sec-WebSocket-Version", "13, 8"), ("Sec-WebSocket-Key", "short"),
            ("Sec-WebSocket-Key", KEY[:-2]), ("Sec-WebSocket-Key", "")]
        for name, value in changes:
            with self.subTest(name=name, value=value):
                fields = [(key, value if key == name else old) for key, old in OPENING]
                self.check_plain("GET", "/live/a", fields)
        for name, _ in OPENING:
            self.check_plain("GET", "/live/a", [pair for pair in OPENING if pair[0] != name])
            doubled = [pair for pair in OPENING if pair[0] == name and name != "Connection"]
            if doubled:
                self.check_plain("GET", "/live/a", [*OPENING, *doubled])
        self.check_plain("POST", "/any/a", OPENING)
        self.check_plain("GET", "/live/a", [("Content-Length", "0"), *OPENING])

    def test_other_routes_and_other_tokens_are_plain(self):
        self.check_plain("GET", "/public", OPENING)
        self.check_plain("GET", "/public", [
            ("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"),
            ("HTTP2-Settings", "AAMAAABkAAQCAAAAAAIAAAAA")])
        self.assertNotIn(b"HTTP2-Settings", self.service.raw)

    def test_http_1_0_opens_none(self):
        lines = "".join(f"{name}: {value}\r\n" for name, value in OPENING)
        answer = self.raw(f"GET /live/a HTTP/1.0\r\nHost: {gates.HOST}\r\n{lines}\r\n")
        self.assertEqual(self.check_upstream(answer).all("Upgrade"), [])

    def test_what_stands_behind_a_handshake_is_judged_on_its_own(self):
        smuggled = f"GET /v1/data/a HTTP/1.1\r\nHost: {gates.HOST}\r\n\r\n".encode()
        for target, version in (("/live/a", "999"), ("/live/a", "13"), ("/public", "13")):
            self.service.reset()
            fields = [(name, version if name.endswith("Version") else value)
                      for name, value in OPENING]
            with wire.Connection(self.gate.address) as connection:
                connection.send(wire.message("GET", target, fields) + smuggled)
                # The recorder answers 200, which is no 101.
                self.assertEqual(connection.response().status, 200)
                self.check_problem(connection.response(), "proof_required")
            self.assertEqual(len(self.service.requests), 1)
            self.assertNotIn(b"/v1/data", self.service.raw)

    def test_without_a_proof_nothing_goes_up(self):
        self.check_problem(self.ask("GET", "/v1/live/a", OPENING), "proof_required")
        self.check_nothing_upstream()

    def test_a_monitored_handshake_goes_up_as_one(self):
        self.service.respond = lambda request: upstream.answer(b"no", "403 Forbidden")
        answer = self.ask("GET", "/v1/watched-live/a", OPENING)
        self.assertEqual(answer.status, 403)
        request = self.service.wait(1)[0]
        self.assertEqual(request.get("Upgrade"), "websocket")
        self.assertEqual(request.get("App-Attest-Verdict"), "monitored")


class Tunnels(case.Case):
    """A service played by hand, and octets that are no WebSocket's: the gate does not read them."""

    def begin(self, *listener):
        self.stage = upstream.Stage()
        self.addCleanup(self.stage.close)

        def change(settings):
            routes(settings)
            settings.listener += listener
            settings.top = ["drain_timeout 1s"]
        self.run_gate(change, service=self.stage)

    def connect(self, **options):
        connection = wire.Connection(self.gate.address, **options)
        self.addCleanup(connection.close)
        return connection

    def open(self, path="/live/a", proof=(), behind=b"", with_101=b"", **options):
        """A tunnel that stands: the client's end, and the service's with its reader."""
        connection = self.connect(**options)
        connection.send(wire.message("GET", path, [*OPENING, *proof]) + behind)
        service, reader = self.stage.accept()
        self.request = reader.request()
        self.assertEqual(reader.buffer, b"")
        self.assertFalse(select.select([service], [], [], 0.1)[0], "octets before the 101")
        service.sendall(switch() + with_101)
        self.answer = connection.read_head()
        self.assertEqual(self.answer.status, 101, self.answer)
        return connection, service, reader

    def ended(self, within=wire.DEADLINE):
        entry = self.gate.log(lambda entry: entry.get("status") == 101, within)
        self.assertIsNotNone(entry, self.gate.out.text)
        return entry

    def test_both_heads_are_the_gates_own(self):
        self.begin()
        self.open()
        self.assertEqual(self.request.all("Connection"), ["Upgrade"])
        self.assertEqual(self.request.all("Upgrade"), ["websocket"])
        self.assertEqual(self.request.get("Sec-WebSocket-Key"), KEY)
        self.assertEqual(self.request.get("App-Attest-Verdict"), "off")
        self.assertEqual(self.answer.get("Connection"), "Upgrade")
        self.assertEqual(self.answer.get("Upgrade"), "websocket")
        self.assertEqual(self.answer.get("Sec-WebSocket-Accept"), accept())
        self.assertEqual(self.answer.all("Content-Length"), [])
        self.assertTrue(self.answer.get("X-Request-Id"))

    def test_octets_on_both_sides_of_the_101_wait_for_it_and_pass(self):
        self.begin()
        connection, service, reader = self.open(behind=b"early", with_101=b"late")
        self.assertEqual(reader.take(5), b"early")
        self.assertEqual(connection.take(4), b"late")
        for number in range(50):
            connection.send(b"up%03d" % number)
            self.assertEqual(reader.take(5), b"up%03d" % number)
            service.sendall(b"dn%03d" % number)
            self.assertEqual(connection.take(5), b"dn%03d" % number)

    def test_a_101_that_is_not_the_right_one_is_no_tunnel(self):
        self.begin()
        wrong = [switch(Sec_WebSocket_Accept=accept("AAAAAAAAAAAAAAAAAAAAAA==")),
                 switch(Sec_WebSocket_Accept=None), switch(Upgrade=None), switch(Upgrade="h2c"),
                 switch(Connection=None), switch(Connection="keep-alive"),
                 switch(Content_Length="5"), switch().replace(b"HTTP/1.1", b"HTTP/1.0")]
        for head in wrong:
            with self.subTest(head=head):
                connection = self.connect()
                connection.send(wire.message("GET", "/live/a", OPENING))
                service, reader = self.stage.accept()
                reader.request()
                service.sendall(head + b"octets")
                self.check_problem(connection.response(), "upstream_unavailable")
                with self.assertRaises((EOFError, ConnectionError)):
                    reader.more()
        # And one that nobody asked for.
        connection = self.connect()
        connection.send(wire.message("GET", "/public", OPENING))
        service, reader = self.stage.accept()
        reader.request()
        service.sendall(switch())
        self.check_problem(connection.response(), "upstream_unavailable")

    def test_any_other_answer_ends_the_request_and_the_connection_goes_on(self):
        self.begin()
        connection = self.connect()
        behind = f"GET /closed/a HTTP/1.1\r\nHost: {gates.HOST}\r\n\r\n".encode()
        connection.send(wire.message("GET", "/live/a", OPENING) + behind)
        service, reader = self.stage.accept()
        reader.request()
        service.sendall(upstream.answer(b"no", "426 Upgrade Required", ["Upgrade: websocket"]))
        answer = connection.response()
        self.assertEqual((answer.status, answer.body), (426, b"no"))
        self.check_problem(connection.response(), "not_found")

    def test_a_switched_connection_is_never_used_again(self):
        self.begin()
        connection, service, reader = self.open()
        connection.close()
        with self.assertRaises((EOFError, ConnectionError)):
            reader.more()
        other = self.connect()
        other.send(wire.message("GET", "/public"))
        fresh, _ = self.stage.accept()
        self.assertIsNot(fresh, service)

    def test_a_side_that_has_ended_lets_the_other_finish(self):
        self.begin()
        for client_first in (True, False):
            connection, service, reader = self.open()
            first, second = (
                (connection.socket, service) if client_first else (service, connection.socket))
            first.sendall(b"last words")
            first.shutdown(socket.SHUT_WR)
            got = b""
            while data := second.recv(100):
                got += data
            self.assertEqual(got, b"last words")
            second.sendall(b"x" * 300_000)
            second.shutdown(socket.SHUT_WR)
            size = 0
            while data := first.recv(1 << 16):
                size += len(data)
            self.assertEqual(size, 300_000)
            self.assertNotIn("reason", self.ended())

    def test_a_client_that_ended_before_the_101_is_read_to_its_end(self):
        self.begin()
        connection = self.connect()
        connection.send(wire.message("GET", "/live/a", OPENING))
        service, reader = self.stage.accept()
        reader.request()
        connection.send(b"all of it")  # nobody reads this yet
        connection.socket.shutdown(socket.SHUT_WR)
        self.assertFalse(gates.poll(lambda: False, within=0.2))  # until the gate knows
        service.sendall(switch() + b"answer")
        self.assertEqual(reader.take(9), b"all of it")
        with self.assertRaises(EOFError):
            reader.more()
        self.assertEqual(connection.read_head().status, 101)
        self.assertEqual(connection.take(6), b"answer")
        service.close()
        self.assertTrue(connection.is_closed(10))

    def test_a_tunnel_that_stands_still_ends(self):
        self.begin("timeouts tunnel=1s")
        connection, service, reader = self.open()
        began = time.monotonic()
        for _ in range(6):  # while anything moves in either direction it stays
            self.assertTrue(connection.is_silent(0.3))
            service.sendall(b"x")
            self.assertEqual(connection.take(1), b"x")
        self.assertGreater(time.monotonic() - began, 1.5)
        self.assertTrue(connection.is_closed(10))
        entry = self.ended()
        self.assertEqual(entry["reason"], "timeout")
        self.assertGreater(entry["duration"], 2)
        with self.assertRaises((EOFError, ConnectionError)):
            reader.more()

    def test_a_tunnel_ends_after_its_longest_time(self):
        self.begin("timeouts tunnel_max=2s")
        connection, service, _ = self.open()
        began = time.monotonic()
        service.settimeout(0.2)
        while time.monotonic() - began < 15:
            try:
                connection.socket.sendall(b"x")
                if not service.recv(100):
                    break
                service.sendall(b"y")
                if not connection.socket.recv(100):
                    break
            except (ConnectionError, TimeoutError):
                break
        self.assertGreater(time.monotonic() - began, 1.5)
        self.assertEqual(self.ended()["reason"], "timeout")

    def test_a_route_has_its_own_times(self):
        self.stage = upstream.Stage()
        self.addCleanup(self.stage.close)

        def change(settings):
            routes(settings)
            settings.routes["GET /live/*"].append("timeouts tunnel=500ms tunnel_max=1h")
        self.run_gate(change, service=self.stage)
        connection, _, _ = self.open()
        self.assertTrue(connection.is_closed(10))

    def test_revoking_its_key_closes_a_tunnel_on_whatever_loop(self):
        self.begin()
        tunnels = []
        for _ in range(6):
            phone = self.app().enrolled()
            proof = phone.prove("GET", "/v1/live/a", None, phone.challenge())
            tunnels.append((phone, *self.open("/v1/live/a", proof)))
        last = tunnels.pop()
        for phone, connection, _, reader in tunnels:
            body = json.dumps({"keyID": phone.key_id}).encode()
            answer = phone.send("POST", "/v1/app-attest/keys/revoke", body, binding="request",
                                purpose="revoke")
            self.assertEqual(answer.status, 204, answer)
            self.assertTrue(connection.is_closed(10))
            with self.assertRaises((EOFError, ConnectionError)):
                reader.more()
        entry = self.ended()
        self.assertEqual((entry["reason"], entry["verdict"]), ("key_revoked", "verified"))
        _, connection, service, reader = last
        connection.send(b"still")
        self.assertEqual(reader.take(5), b"still")

    def test_an_account_that_revokes_a_key_closes_its_tunnel(self):
        self.stage = upstream.Stage()
        self.addCleanup(self.stage.close)

        def change(settings):
            routes(settings)
            settings.listener.append("trusted_proxies 127.0.0.2/32")
            settings.account = "header X-Account-Id"
        self.run_gate(change, service=self.stage)
        phone = self.app(account="alice", source="127.0.0.2").enrolled()
        proof = phone.prove("GET", "/v1/live/a", None, phone.challenge())
        connection, _, reader = self.open(
            "/v1/live/a", [*phone.account, *proof], source="127.0.0.2")
        answer = phone.call("keys/revoke", {"keyID": phone.key_id})
        self.assertEqual(answer.status, 204, answer)
        self.assertTrue(connection.is_closed(10))
        with self.assertRaises((EOFError, ConnectionError)):
            reader.more()
        self.assertEqual(self.ended()["reason"], "key_revoked")

    def test_a_stopping_gate_bounds_its_tunnels(self):
        self.begin()
        connection, _, reader = self.open()
        self.gate.signal(signal.SIGTERM)
        self.assertTrue(self.gate.wait_notification("STOPPING=1"))
        connection.send(b"still")
        self.assertEqual(reader.take(5), b"still")
        self.assertTrue(connection.is_closed(10))
        self.assertEqual(self.gate.process.wait(10), 0)

    def flood(self, send):
        """Sends until nothing is taken for a second; how many bytes were taken."""
        block, taken = b"x" * 65536, 0
        send.setblocking(False)
        while select.select([], [send], [], 1.0)[1]:
            try:
                taken += send.send(block)
            except BlockingIOError:
                continue
            self.assertLess(taken, 64 * MIB, "no back-pressure")
        send.setblocking(True)
        return taken

    def test_a_slow_reader_on_either_side_slows_the_other(self):
        self.begin()
        for down in (True, False):
            connection, service, _ = self.open(receive_buffer=65536)
            fast, slow = (
                (service, connection.socket) if down else (connection.socket, service))
            before = self.gate.memory()
            taken = self.flood(fast)
            self.assertLess(self.gate.memory() - before, 4 * MIB)
            slow.sendall(b"the other way goes on")
            self.assertEqual(fast.recv(100), b"the other way goes on")
            got = 0
            while got < taken:
                data = slow.recv(1 << 18)
                self.assertTrue(data, "cut short")
                got += len(data)

    def test_a_service_that_goes_away_ends_the_tunnel(self):
        self.begin()
        connection, service, _ = self.open()
        service.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        service.close()
        self.assertTrue(connection.is_closed(10))
        self.assertEqual(self.ended()["reason"], "upstream")


class Encrypted(case.Case):
    """A tunnel between TLS on both sides."""

    def setUp(self):
        self.pki = pki.Authority(self.temporary())
        api = self.pki.issue("api", gates.HOST)
        service = self.pki.issue("service", "service.test")
        self.server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.server.load_cert_chain(service.pem, service.key_pem)
        self.stage = upstream.Stage()
        self.addCleanup(self.stage.close)

        def change(settings):
            routes(settings)
            settings.listener += ["tls {", api.line, "}"]
            settings.upstream += ["tls {", f"ca file:{self.pki.pem}", "name service.test", "}"]
        self.run_gate(change, service=self.stage)

    def open(self):
        connection = secure.Connection(self.gate.address, secure.context(self.pki))
        self.addCleanup(connection.close)
        connection.send(wire.message("GET", "/live/a", OPENING) + b"early")
        plain, _ = self.stage.accept()
        service = self.server.wrap_socket(plain, server_side=True, suppress_ragged_eofs=False)
        self.addCleanup(service.close)
        reader = upstream.Reader(service)
        self.assertEqual(reader.request().get("X-Forwarded-Proto"), "https")
        service.sendall(switch())
        self.assertEqual(connection.read_head().status, 101)
        self.assertEqual(reader.take(5), b"early")
        return connection, service, reader

    def test_octets_pass_both_ways_at_once(self):
        connection, service, reader = self.open()
        data = os.urandom(3 * MIB)
        senders = [threading.Thread(target=side.sendall, args=(data,), daemon=True)
                   for side in (connection.socket, service)]
        found = {}
        takers = [
            threading.Thread(
                target=lambda: found.update(down=connection.take(len(data))), daemon=True),
            threading.Thread(target=lambda: found.update(up=reader.take(len(data))), daemon=True)]
        for thread in senders + takers:
            thread.start()
        for thread in senders + takers:
            thread.join(60)
        self.assertTrue(found.get("up") == data and found.get("down") == data, list(found))
        connection.send(b"after")
        self.assertEqual(reader.take(5), b"after")

    def test_a_side_that_ends_is_told_to_the_other(self):
        def end(side):
            """Says the end and waits for the other's."""
            try:
                side.unwrap()
            except OSError:
                pass
        for client_first in (True, False):
            connection, service, _ = self.open()
            first, second = (
                (connection.socket, service) if client_first else (service, connection.socket))
            first.sendall(b"bye")
            thread = threading.Thread(target=end, args=(first,), daemon=True)
            thread.start()
            self.assertEqual(second.recv(100), b"bye")
            self.assertEqual(second.recv(100), b"")
            end(second)
            thread.join(wire.DEADLINE)
            self.assertFalse(thread.is_alive())
