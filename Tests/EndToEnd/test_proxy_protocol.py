"""The PROXY protocol in (`proxy_protocol`): by source and then required, never guessed (T26)."""

import socket
import struct
import time

import case
import gate as gates
import pki
import secure
import wire

BALANCER = "127.0.0.2"
GET = wire.message("GET", "/public")
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def line(client="192.0.2.1", family="TCP4", destination="10.0.0.1", ports="56324 443"):
    return f"PROXY {family} {client} {destination} {ports}\r\n".encode()


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def block(client="192.0.2.1", command=0x21, values=b"", checksum=False):
    family = socket.AF_INET6 if ":" in client else socket.AF_INET
    packed = socket.inet_pton(family, client)
    rest = packed + packed + struct.pack(">HH", 56324, 443) + values
    if checksum:
        rest += b"\3\0\4\0\0\0\0"
    kind = 0x21 if family == socket.AF_INET6 else 0x11
    head = SIGNATURE + bytes([command, kind]) + struct.pack(">H", len(rest)) + rest
    return head[:-4] + struct.pack(">I", crc32c(head)) if checksum else head


class Sources(case.SharedGate):
    @classmethod
    def configure(cls, settings):
        settings.listener += [
            f"proxy_protocol require from {BALANCER}/32", "trusted_proxies 198.51.100.0/24",
            "timeouts header=1s keepalive=30s", "limits per_address=3"]

    def connect(self, source=BALANCER):
        connection = wire.Connection(self.gate.address, source=source)
        self.addCleanup(connection.close)
        return connection

    def check_client(self, header, client):
        """A request behind `header` is seen as the client's by service and log."""
        self.service.reset()
        connection = self.connect()
        connection.send(header + GET)
        answer = connection.response()
        request = self.check_upstream(answer)
        self.assertEqual(request.get("X-Forwarded-For"), client)
        self.assertEqual(self.gate.logged(answer)["client"], client)
        connection.close()

    def test_the_header_says_who_the_client_is(self):
        self.check_client(line(), "192.0.2.1")
        self.check_client(line("2001:db8::7", "TCP6", "::1"), "2001:db8::7")
        self.check_client(block(), "192.0.2.1")
        self.check_client(block("2001:db8::7"), "2001:db8::7")
        self.check_client(block(values=b"\2\0\3abc\4\0\0", checksum=True), "192.0.2.1")

    def test_a_header_that_names_nobody_keeps_the_peer(self):
        self.check_client(b"PROXY UNKNOWN\r\n", BALANCER)
        self.check_client(block(command=0x20), BALANCER)
        self.check_client(SIGNATURE + b"\x20\0\0\0", BALANCER)
        self.check_client(SIGNATURE + b"\x21\0\0\0", BALANCER)

    def test_a_header_may_come_in_pieces(self):
        for header in (line(), block(checksum=True)):
            self.service.reset()
            connection = self.connect()
            for at in range(len(header)):
                connection.send(header[at : at + 1])
            connection.send(GET)
            self.assertEqual(
                self.check_upstream(connection.response()).get("X-Forwarded-For"), "192.0.2.1")
            connection.close()

    def test_it_comes_once_and_holds_for_the_connection(self):
        connection = self.connect()
        connection.send(line() + GET + GET)
        for number in (1, 2):
            self.assertEqual(connection.response().status, 200)
            request = self.service.wait(number)[-1]
            self.assertEqual(request.get("X-Forwarded-For"), "192.0.2.1")
        connection.send(line("192.0.2.9") + GET)
        self.check_problem(connection.response(), "bad_request")

    def test_a_balancer_that_sends_none_is_closed(self):
        connection = self.connect()
        connection.send(GET)
        self.assertTrue(connection.is_closed())
        self.assertEqual(connection.buffer, b"")
        silent = self.connect()
        began = time.monotonic()
        self.assertTrue(silent.is_closed(10))
        self.assertGreater(time.monotonic() - began, 0.7)
        partial = self.connect()
        partial.send(line()[:10])
        self.assertTrue(partial.is_closed(10))
        self.assertEqual(silent.buffer + partial.buffer, b"")
        self.check_nothing_upstream()

    def test_a_malformed_header_closes(self):
        for header in (
            b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n", b"PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n",
            b"PROXY  TCP4 1.2.3.4 1.2.3.4 1 2\r\n", b"PROXY TCP4 ::1 ::1 1 2\r\n",
            b"PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n", b"PROXY " + b"x" * 200,
            b"proxy TCP4 1.2.3.4 1.2.3.4 1 2\r\n", b"PROXY UNKNOWN \0\r\n",
            SIGNATURE + b"\x31\x11\0\x0c" + bytes(12), SIGNATURE + b"\x22\x11\0\x0c" + bytes(12),
            SIGNATURE + b"\x21\x11\0\x0b" + bytes(11), SIGNATURE + b"\x21\x11\xff\xff",
            block(values=b"\2\0\xff"), block(checksum=True)[:-1] + b"\0",
        ):
            with self.subTest(header=header[:40]):
                connection = self.connect()
                connection.send(header + GET)
                self.assertTrue(connection.is_closed())
                self.assertEqual(connection.buffer, b"")
        self.check_nothing_upstream()
        self.assertTrue(self.gate.err.wait(lambda text: "PROXY header" in text))

    def test_others_are_clients_and_their_header_is_a_bad_request(self):
        for source in ("127.0.0.1", "127.0.0.3"):
            self.service.reset()
            answer = self.ask("GET", "/public", source=source)
            self.assertEqual(self.check_upstream(answer).get("X-Forwarded-For"), source)
            self.service.reset()
            for header in (line(), block(), SIGNATURE + b"\x20\0\0\0"):
                connection = self.connect(source)
                connection.send(header + GET)
                self.check_problem(connection.response(), "bad_request")
                self.assertTrue(connection.is_closed())
            self.check_nothing_upstream()

    def test_per_address_counts_the_client_and_not_the_balancer(self):
        held = []
        for client in ("192.0.2.50", "192.0.2.51"):
            for _ in range(3):
                held.append(self.connect())
                held[-1].send(line(client) + GET)
                self.assertEqual(held[-1].response().status, 200)
        extra = self.connect()
        extra.send(line("192.0.2.50") + GET)
        self.assertTrue(extra.is_closed())
        self.assertTrue(self.gate.err.wait(
            lambda text: "per_address=3 is reached by 192.0.2.50" in text))
        held[0].close()
        self.assertTrue(gates.poll(lambda: self.serves("192.0.2.50")))
        for connection in held:
            connection.close()

    def serves(self, client):
        with wire.Connection(self.gate.address, source=BALANCER) as connection:
            connection.send(line(client) + GET)
            try:
                return connection.response().status == 200
            except wire.Closed:
                return False

    def test_trusted_proxies_are_told_by_the_header(self):
        forwarded = [("X-Forwarded-For", "203.0.113.5")]
        for client, expected in (("198.51.100.7", "203.0.113.5, 198.51.100.7"),
                                 ("192.0.2.1", "192.0.2.1")):
            self.service.reset()
            connection = self.connect()
            connection.send(line(client) + wire.message("GET", "/public", forwarded))
            request = self.check_upstream(connection.response())
            self.assertEqual(", ".join(request.all("X-Forwarded-For")), expected)
            connection.close()


class BeforeTLS(case.Case):
    def test_the_header_comes_in_the_clear_before_the_handshake(self):
        authority = pki.Authority(self.temporary())
        api = authority.issue("api", gates.HOST)
        self.run_gate(lambda settings: settings.listener.extend(
            [f"proxy_protocol require from {BALANCER}/32", "tls {", api.line, "}"]))
        for header in (line(), block(checksum=True)):
            self.service.reset()
            with wire.Connection(self.gate.address, source=BALANCER) as connection:
                connection.send(header)
                connection.socket = secure.context(authority).wrap_socket(
                    connection.socket, server_hostname=gates.HOST)
                answer = connection.ask("GET", "/public")
                self.assertEqual(self.check_upstream(answer).get("X-Forwarded-For"), "192.0.2.1")
                self.assertEqual(self.gate.logged(answer)["tls"], "TLSv1.3")
        # A handshake where the header has to stand, and a header where none may.
        for source, first in ((BALANCER, b""), ("127.0.0.1", line())):
            with wire.Connection(self.gate.address, source=source) as connection:
                connection.send(first)
                with self.assertRaises(OSError):
                    secure.context(authority).wrap_socket(
                        connection.socket, server_hostname=gates.HOST)
