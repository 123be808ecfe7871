"""Services that speak HTTP/2 (RFC 9113): one connection, many requests, flow control both ways."""

import socket
import struct
import threading
import time

import h2.errors
import hpack
import hyperframe.frame

import case
import gate as gates
import h2_service
import wire

MIB = 1 << 20


class Base(case.Case):
    def start(self, respond=None, change=None, **options):
        self.back = h2_service.Service(respond, **options)
        self.addCleanup(self.back.close)

        def settings(found):
            found.upstream.append("protocol h2c")
            found.top.append("loops 1")
            if change:
                change(found)
        self.run_gate(settings, service=self.back)


class Service(Base):
    def setUp(self):
        self.start()

    def test_a_request_is_what_it_was(self):
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message(
                "POST", "/public/a%20b?x=1&y", [("X-Mixed", "Kept; as=is"), ("Cookie", "a=1")],
                b"body"))
            stream = self.back.next()
            self.assertTrue(stream.link.wait(lambda: stream.is_ended))
            pseudo = dict(stream.fields[:4])
            self.assertEqual(pseudo, {
                ":method": "POST", ":scheme": "http", ":path": "/public/a%20b?x=1&y",
                ":authority": gates.HOST})
            self.assertEqual(stream.get("x-mixed"), "Kept; as=is")
            self.assertEqual(stream.get("content-length"), "4")
            self.assertEqual(stream.get("app-attest-verdict"), "off")
            self.assertIsNone(stream.get("host"))
            self.assertIsNone(stream.get("connection"))
            self.assertIsNone(stream.get("te"))
            self.assertEqual(stream.body, b"body")
            stream.answer(b"there", 201, [("x-back", "1")])
            answer = connection.response("POST")
            self.assertEqual((answer.status, answer.body), (201, b"there"))
            self.assertEqual(answer.get("X-Back"), "1")
            self.assertEqual(answer.get("Content-Length"), "5")
        entry = self.gate.logged(answer)
        self.assertEqual((entry["status"], entry["upstream"]), (201, f"127.0.0.1:{self.back.port}"))

    def test_a_signed_request_and_its_replay(self):
        phone = self.app().enrolled()
        body = b"x" * 200_000
        proof = phone.prove("POST", "/v1/data/a", body, phone.challenge())
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message("POST", "/v1/data/a", proof, body))
            stream = self.back.next()
            self.assertTrue(stream.link.wait(lambda: stream.is_ended))
            self.assertEqual(stream.body, body)
            self.assertEqual(stream.get("app-attest-verdict"), "verified")
            self.assertIsNone(stream.get("app-attest-assertion"))
            stream.answer()
            self.assertEqual(connection.response("POST").status, 200)
            answer = connection.ask("POST", "/v1/data/a", proof, body)
            self.check_problem(answer, "challenge_required")
        self.assertTrue(self.back.waiting.empty())

    def test_requests_share_a_connection_and_none_waits_for_another(self):
        ends = [wire.Connection(self.gate.address) for _ in range(20)]
        for number, end in enumerate(ends):
            self.addCleanup(end.close)
            end.send(wire.message("GET", f"/public/{number}"))
        streams = [self.back.next() for _ in ends]
        self.assertEqual(len(self.back.links), 1)
        for stream in reversed(streams):
            stream.answer(stream.get(":path").encode())
        for number, end in enumerate(ends):
            self.assertEqual(end.response().body, b"/public/%d" % number)

    def test_answers_without_a_body(self):
        for method, status in (("HEAD", 200), ("GET", 204), ("GET", 304)):
            with self.subTest(method=method, status=status), \
                    wire.Connection(self.gate.address) as connection:
                connection.send(wire.message(method, "/public"))
                stream = self.back.next()
                fields = [("content-length", "17")] if status != 204 else []
                stream.respond(status, fields, end=True)
                answer = connection.response(method)
                self.assertEqual((answer.status, answer.body), (status, b""))
                self.assertEqual(answer.get("Content-Length"), "17" if fields else None)
                self.assertEqual(connection.ask("OPTIONS", "*").status, 200)

    def test_interim_answers_and_trailers(self):
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message(
                "GET", "/public", [("TE", "trailers"), ("Connection", "TE")]))
            stream = self.back.next()
            self.assertEqual(stream.get("te"), "trailers")
            stream.link.run(lambda peer: peer.send_headers(
                stream.number, [(":status", "103"), ("link", "</a>; rel=preload")]))
            stream.respond(200, [("trailer", "x-sum")])
            stream.send(b"hello")
            stream.trail([("x-sum", "5"), ("set-cookie", "no=1")])
            answer = connection.read_head()
            self.assertEqual((answer.status, answer.interim), (200, [103]))
            self.assertEqual(answer.get("Transfer-Encoding"), "chunked")
            self.assertEqual(connection.line(), b"5")
            self.assertEqual(connection.take(7), b"hello\r\n")
            self.assertEqual([connection.line() for _ in range(3)], [b"0", b"X-Sum: 5", b""])

    def test_a_flood_of_interim_answers_is_no_answer(self):
        for count, status in ((8, 200), (9, 502)):
            with self.subTest(count=count), wire.Connection(self.gate.address) as connection:
                connection.send(wire.message("GET", "/public"))
                stream = self.back.next()
                for _ in range(count):
                    stream.link.run(lambda peer, s=stream: peer.send_headers(
                        s.number, [(":status", "103"), ("link", "</a>; rel=preload")]))
                if status == 200:
                    stream.answer()
                self.assertEqual(connection.response().status, status)

    def test_a_slow_client_stops_its_own_answer_alone(self):
        slow = wire.Connection(self.gate.address, receive_buffer=4096)
        self.addCleanup(slow.close)
        slow.send(wire.message("GET", "/public/slow"))
        stream = self.back.next()
        stream.respond(200)
        sent = []

        def flood():
            try:
                for _ in range(512):
                    stream.send(b"x" * 65536)
                    sent.append(1)
                stream.send(b"", end=True)
            except (OSError, TimeoutError):
                pass
        before = self.gate.memory()
        threading.Thread(target=flood, daemon=True).start()
        for number in range(50):
            with wire.Connection(self.gate.address) as connection:
                connection.send(wire.message("GET", f"/public/{number}"))
                self.back.next().answer(b"y" * 100_000)
                self.assertEqual(len(connection.response().body), 100_000)
        self.assertLess(len(sent), 256, "no back-pressure")
        self.assertLess(self.gate.memory() - before, 8 * MIB)
        slow.read_head()
        self.assertGreater(int(slow.line(), 16), 0)

    def test_a_service_that_grants_no_window_stops_the_upload(self):
        self.back.consumes = False
        with wire.Connection(self.gate.address) as connection:
            connection.send(b"POST /public HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n"
                            % (gates.HOST.encode(), 64 * MIB))
            stream = self.back.next()
            connection.socket.settimeout(0.5)
            taken, before = 0, self.gate.memory()
            try:
                while taken < 64 * MIB:
                    taken += connection.socket.send(b"z" * 65536)
            except TimeoutError:
                pass
            self.assertLess(taken, 32 * MIB, "no back-pressure")
            self.assertLess(self.gate.memory() - before, 8 * MIB)
            stream.answer(b"enough", 413)
            connection.socket.settimeout(15)
            self.assertEqual(connection.response("POST").status, 413)

    def test_a_long_upload_never_stops_half_way(self):
        # Back-pressure begins and ends many times; each time somebody has to be told.
        body = bytes(range(256)) * (6 * MIB // 256)
        with wire.Connection(self.gate.address) as connection:
            threading.Thread(target=connection.send, daemon=True, args=(
                wire.message("POST", "/public", body=body),)).start()
            stream = self.back.next()
            self.assertTrue(stream.link.wait(lambda: stream.is_ended, 30))
            self.assertEqual(stream.body, body)
            stream.answer()
            self.assertEqual(connection.response("POST").status, 200)

    def test_resets_and_refusals(self):
        for method, code, wanted in (
                ("GET", h2.errors.ErrorCodes.INTERNAL_ERROR, 502),
                ("POST", h2.errors.ErrorCodes.CANCEL, 502),
                ("POST", h2.errors.ErrorCodes.REFUSED_STREAM, 200)):
            with self.subTest(method=method, code=code), \
                    wire.Connection(self.gate.address) as connection:
                connection.send(wire.message(method, "/public", body=b"once"))
                stream = self.back.next()
                self.assertTrue(stream.link.wait(lambda s=stream: s.is_ended))
                stream.cancel(code)
                if wanted == 200:
                    again = self.back.next()
                    self.assertTrue(again.link.wait(lambda s=again: s.is_ended))
                    self.assertEqual(again.body, b"once")
                    again.answer()
                answer = connection.response(method)
                self.assertEqual(answer.status, wanted)
        self.assertEqual(len(self.back.links), 1)
        self.assertTrue(self.back.waiting.empty())

    def test_a_stream_that_was_reset_leaves_nothing_behind(self):
        self.start(change=lambda found: found.upstream.append("keepalive 8 idle=300ms"))
        for code in (h2.errors.ErrorCodes.CANCEL, h2.errors.ErrorCodes.REFUSED_STREAM):
            with wire.Connection(self.gate.address) as connection:
                connection.send(wire.message("GET", "/public"))
                for _ in range(2 if code == h2.errors.ErrorCodes.REFUSED_STREAM else 1):
                    stream = self.back.next()
                    stream.cancel(code)
                self.assertEqual(connection.response().status, 502)
        self.assertTrue(gates.poll(lambda: not any(link.is_open for link in self.back.links)))

    def test_a_connection_that_has_fallen_silent_gets_no_more_requests(self):
        self.start(change=lambda found: found.upstream.append(
            "timeouts connect=2s first_byte=400ms idle=2s"))
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message("GET", "/public/first"))
            self.back.next().answer()
            self.assertEqual(connection.response().status, 200)
            connection.send(wire.message("GET", "/public/lost"))
            lost = self.back.next()
            self.check_problem(connection.response(), "upstream_timeout")
            connection.send(wire.message("GET", "/public/next"))
            found = self.back.next()
            self.assertIsNot(found.link, lost.link)
            found.answer()
            self.assertEqual(connection.response().status, 200)

    def test_a_slow_answer_leaves_a_connection_that_speaks(self):
        self.start(change=lambda found: found.upstream.append(
            "timeouts connect=2s first_byte=700ms idle=2s"))
        with wire.Connection(self.gate.address) as slow, \
                wire.Connection(self.gate.address) as other:
            slow.send(wire.message("GET", "/public/slow"))
            waiting = self.back.next()
            other.send(wire.message("GET", "/public/a"))
            self.back.next().answer()
            self.assertEqual(other.response().status, 200)
            self.check_problem(slow.response(), "upstream_timeout")
            other.send(wire.message("GET", "/public/b"))
            again = self.back.next()
            self.assertIs(again.link, waiting.link)
            again.answer()
            self.assertEqual(other.response().status, 200)

    def test_a_malformed_answer_is_refused_at_once(self):
        pairs = [(":status", "200"), ("content-length", "0")]
        for bad in ([("X-Upper", "a")], [("connection", "close")], [("x", "a\r\nb: c")],
                    [("transfer-encoding", "chunked")], [("content-length", "1")],
                    [(":status", "200")]):
            with self.subTest(bad=bad), wire.Connection(self.gate.address) as connection:
                connection.send(wire.message("GET", "/public"))
                stream = self.back.next()
                block = hpack.Encoder().encode(pairs + bad)
                frame = hyperframe.frame.HeadersFrame(stream.number, data=block)
                frame.flags = {"END_HEADERS", "END_STREAM"}
                began = time.monotonic()
                stream.link.socket.sendall(frame.serialize())
                self.check_problem(connection.response(), "upstream_unavailable")
                self.assertLess(time.monotonic() - began, 5)

    def test_an_answer_that_breaks_off_is_seen_as_broken(self):
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message("GET", "/public"))
            stream = self.back.next()
            stream.respond(200)
            stream.send(b"half")
            connection.read_head()
            stream.cancel(h2.errors.ErrorCodes.INTERNAL_ERROR)
            with self.assertRaises(wire.Closed):
                connection.chunks()

    def test_a_client_that_goes_away_resets_its_stream(self):
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message("GET", "/public"))
            stream = self.back.next()
            connection.socket.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.assertTrue(stream.link.wait(lambda: stream.reset is not None))
        self.assertEqual(stream.reset, h2.errors.ErrorCodes.CANCEL)
        self.assertTrue(stream.link.is_open)

    def test_after_goaway_the_next_request_gets_a_new_connection(self):
        with wire.Connection(self.gate.address) as connection:
            connection.send(wire.message("GET", "/public/a"))
            first = self.back.next()
            first.link.run(lambda peer: peer.close_connection(last_stream_id=first.number))
            with wire.Connection(self.gate.address) as other:
                other.send(wire.message("POST", "/public/b", body=b"x"))
                second = self.back.next()
                self.assertIsNot(second.link, first.link)
                second.answer()
                self.assertEqual(other.response("POST").status, 200)

    def test_a_connection_that_dies_fails_what_it_carried(self):
        ends = [wire.Connection(self.gate.address) for _ in range(3)]
        for end in ends:
            self.addCleanup(end.close)
            end.send(wire.message("POST", "/public", body=b"x"))
        streams = [self.back.next() for _ in ends]
        streams[0].link.socket.shutdown(socket.SHUT_RDWR)
        for end in ends:
            self.check_problem(end.response("POST"), "upstream_unavailable")

    def test_a_service_that_speaks_no_http2(self):
        plain = self.recorder()
        self.run_gate(lambda found: found.upstream.append("protocol h2c"), service=plain)
        self.check_problem(self.ask("GET", "/public"), "upstream_unavailable")


class Terms(Base):
    def answer_all(self, stream):
        stream.answer()

    def test_idle_connections_end_and_so_many_requests_go_over_one(self):
        self.start(self.answer_all,
                   lambda found: found.upstream.append("keepalive 8 idle=500ms requests=3"))
        with wire.Connection(self.gate.address) as connection:
            for _ in range(9):
                self.assertEqual(connection.ask("GET", "/public").status, 200)
        self.assertEqual(len(self.back.links), 3)
        self.assertTrue(gates.poll(lambda: not any(link.is_open for link in self.back.links)))
        self.assertEqual(self.back.faults, [])

    def test_more_requests_than_the_service_takes_at_once(self):
        self.start(self.answer_all, streams_max=2)
        self.assertEqual(self.ask("GET", "/public").status, 200)
        answers = []

        def ask():
            answers.append(self.ask("GET", "/public").status)
        threads = [threading.Thread(target=ask) for _ in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(15)
        self.assertEqual(answers, [200] * 30)

    def test_health_is_asked_in_http2(self):
        asked = []

        def answer(stream):
            if stream.get(":path") == "/healthz":
                asked.append(stream.get(":method"))
                return stream.answer(status=200 if len(asked) < 5 else 500)
            return stream.answer()
        self.start(answer, lambda found: found.upstream.append(
            "health GET /healthz expect=200 every=100ms timeout=1s rise=1 fall=1"))
        self.assertTrue(gates.poll(lambda: len(asked) >= 3))
        self.assertEqual(self.ask("GET", "/public").status, 200)
        self.assertTrue(gates.poll(lambda: "is down: answered 500" in self.gate.err.text))
        self.assertEqual(set(asked), {"GET"})
